package jobspec

import (
	"fmt"
	"unicode/utf8"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// Limits of a control. A rate may be a fraction: the least is about one start a day.
const (
	MaxControlBytes    = 16 << 10
	MaxMaxRunning      = 1_000_000
	MinStartsPerSecond = 0.00001
	MaxStartsPerSecond = 100_000
)

// Control is what shall hold for all jobs of a queue, a job type or an owner.
type Control struct {
	Paused          bool
	MaxRunning      *int     // 0: nothing runs; nil: any number
	StartsPerSecond *float64 // nil: any number
}

// DecodeControl reads one whole: what it does not name does not hold. It says all that is wrong, as an
// *apierror.Error.
func DecodeControl(body []byte) (Control, error) {
	if p := scanProblems(body, ""); p != nil {
		return Control{}, p.errIn("control")
	}
	r := newReader(body, "")
	var control Control
	r.object(func() {
		switch string(r.name) {
		case "paused":
			control.Paused = r.boolean()
		case "maxRunning":
			if !r.null() {
				n := int(r.integer(0, MaxMaxRunning))
				control.MaxRunning = &n
			}
		case "startsPerSecond":
			if !r.null() {
				rate := r.rate()
				control.StartsPerSecond = &rate
			}
		default:
			r.unknown()
		}
	})
	return control, r.close().errIn("control")
}

func (r *reader) rate() float64 {
	before := len(r.problems)
	rate := r.number()
	if len(r.problems) == before && (rate < MinStartsPerSecond || rate > MaxStartsPerSecond) {
		r.bad("must be from 0.00001 to %d", MaxStartsPerSecond)
	}
	return rate
}

// CheckQueue refuses what no queue can be called. Like those below it gives an *apierror.Error.
func CheckQueue(name string) error { return checkName(checkQueue(name)) }

// CheckJobType refuses what no job's type can be.
func CheckJobType(name string) error { return checkName(checkJobType(name)) }

// CheckOwner refuses what no job's ownerId can be.
func CheckOwner(name string) error {
	switch {
	case !utf8.ValidString(name):
		return checkName("must be UTF-8")
	case utf8.RuneCountInString(name) > MaxKey:
		return checkName(fmt.Sprintf("must have at most %d characters", MaxKey))
	}
	return checkName(checkLabel(name))
}

func checkName(wrong string) error {
	if wrong == "" {
		return nil
	}
	return problems{apierror.Detail{Path: "name", Message: wrong}}.errIn("control")
}
