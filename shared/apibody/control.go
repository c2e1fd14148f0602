package apibody

import (
	"fmt"
	"unicode/utf8"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// Limits of a control. A rate may be a fraction: the least is about one start a day.
const (
	MaxControlBytes    = 16 << 10
	MaxMaxRunning      = 1_000_000
	MinStartsPerSecond = 0.00001
	MaxStartsPerSecond = 100_000
	MaxWeight          = 100
)

// Control pauses or limits all jobs of a queue, a job type, an owner or a fairness key.
type Control struct {
	Paused          bool
	MaxRunning      *int     // 0: nothing runs; nil: any number
	StartsPerSecond *float64 // nil: any number
	Weight          int      // of a fairness key; 0: none is named
}

// DecodeControl reads a whole control: a pause or limit that the body does not name is not in force. It returns all
// problems as an *apierror.Error.
func DecodeControl(body []byte) (Control, error) {
	r := newReader(body)
	var control Control
	r.Object(func() {
		switch string(r.Name) {
		case "paused":
			control.Paused = r.Boolean()
		case "maxRunning":
			if !r.Null() {
				n := int(r.Integer(0, MaxMaxRunning))
				control.MaxRunning = &n
			}
		case "startsPerSecond":
			if !r.Null() {
				rate := r.rate()
				control.StartsPerSecond = &rate
			}
		case "weight":
			if !r.Null() {
				control.Weight = int(r.Integer(1, MaxWeight))
			}
		default:
			r.Unknown()
		}
	})
	return control, r.Close().Err("control")
}

func (r reader) rate() float64 {
	before := len(r.Problems)
	rate := r.Number()
	if len(r.Problems) == before && (rate < MinStartsPerSecond || rate > MaxStartsPerSecond) {
		r.Bad("must be from 0.00001 to %d", MaxStartsPerSecond)
	}
	return rate
}

// CheckQueue refuses a control for a name that no queue can have. The error of these functions is an *apierror.Error.
func CheckQueue(name string) error { return checkName(jobspec.WrongQueue(name)) }

// CheckJobType refuses a control for a name that no job type can have.
func CheckJobType(name string) error { return checkName(jobspec.WrongJobType(name)) }

// CheckPayloadFilter refuses a text that filters by no value of payloads.
func CheckPayloadFilter(text string) error { return checkName(jobspec.WrongPayloadFilter(text)) }

// CheckOwner refuses a control for a name that no owner and no fairness key can have.
func CheckOwner(name string) error {
	switch {
	case !utf8.ValidString(name):
		return checkName("must be UTF-8")
	case utf8.RuneCountInString(name) > jobspec.MaxKey:
		return checkName(fmt.Sprintf("must have at most %d characters", jobspec.MaxKey))
	}
	return checkName(strictjson.CheckLabel(name))
}

func checkName(wrong string) error {
	if wrong == "" {
		return nil
	}
	return strictjson.Problems{apierror.Detail{Path: "name", Message: wrong}}.Err("control")
}
