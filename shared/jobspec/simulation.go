package jobspec

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"net/url"
	"time"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// Limits of a simulation. Lengths of text are in characters.
const (
	MaxSteps      = 1_000
	MaxSleep      = 24 * time.Hour // also of HTTP_CALL's latencyMs
	MaxIterations = 10_000_000_000 // some seconds to a minute of one core
	MaxURL        = 2_048
)

// AllAttempts is the number of failing attempts of a Fail that never stops failing.
const AllAttempts = math.MaxInt32

// The values of members that a FAIL step leaves out.
const (
	DefaultFailMessage = "the FAIL step failed, as its payload requests"
	DefaultFailCode    = string(apierror.SimulationFailed)
	defaultMethod      = "GET"
)

// Step is one of Sleep, Log, Compute, HTTPCall and Fail.
type Step interface{ step() }

// Sleep waits.
type Sleep struct{ Duration time.Duration }

// Log writes a line to the attempt's log.
type Log struct{ Message string }

// Compute keeps a core busy for Iterations rounds of a loop.
type Compute struct{ Iterations int64 }

// HTTPCall calls the URL; without one it only waits for the latency.
type HTTPCall struct {
	URL     string // http or https, absolute, without credentials; may be empty
	Method  string // GET, HEAD, POST, PUT, PATCH or DELETE
	Latency time.Duration
}

// Fail fails the first Attempts attempts.
type Fail struct {
	Message   string
	ErrorCode string
	Retryable bool
	Attempts  int // AllAttempts: each
}

// Fails reports whether the step fails the attempt (1 is the first).
func (f Fail) Fails(attempt int) bool { return attempt <= f.Attempts }

func (Sleep) step()    {}
func (Log) step()      {}
func (Compute) step()  {}
func (HTTPCall) step() {}
func (Fail) step()     {}

// ParseSimulation reads the payload of a SIMULATION job. The error is an *apierror.Error, with
// paths that start at payload.
func ParseSimulation(payload []byte) ([]Step, error) {
	if p := strictjson.Scan(payload, "payload"); p != nil {
		return nil, p.Err("job request")
	}
	steps, p := parseSimulation(payload)
	if err := p.Err("job request"); err != nil {
		return nil, err
	}
	return steps, nil
}

func parseSimulation(payload []byte) ([]Step, strictjson.Problems) {
	r := newReader(payload, "payload")
	var steps []Step
	seen := false
	ok := r.Object(func() {
		if string(r.Name) != "steps" {
			r.Unknown()
			return
		}
		seen = true
		if r.Array(MaxSteps, func(int) { steps = append(steps, r.step()) }) && len(steps) == 0 {
			r.Bad("must have at least one step")
		}
	})
	if ok && !seen {
		r.BadIn("steps", "is required")
	}
	return steps, r.Close()
}

// fields is a set of a step's members.
type fields uint

const (
	fType fields = 1 << iota
	fMessage
	fDuration
	fIterations
	fURL
	fMethod
	fLatency
	fErrorCode
	fRetryable
	fFailAttempts
)

var fieldNames = [...]string{"type", "message", "durationMs", "iterations", "url", "method",
	"latencyMs", "errorCode", "retryable", "failAttempts"}

// rawStep is a step before its type is known to have been read.
type rawStep struct {
	typ      string
	given    fields
	duration time.Duration
	log      string
	rounds   int64
	call     HTTPCall
	fail     Fail
}

func (r reader) step() Step {
	s := rawStep{call: HTTPCall{Method: defaultMethod}, fail: Fail{Message: DefaultFailMessage,
		ErrorCode: DefaultFailCode, Retryable: true, Attempts: AllAttempts}}
	if !r.Object(func() { s.given |= r.stepField(&s) }) {
		return nil
	}
	switch s.typ {
	case "SLEEP":
		r.has(s, fDuration, fDuration)
		return Sleep{s.duration}
	case "LOG":
		r.has(s, fMessage, fMessage)
		return Log{s.log}
	case "COMPUTE":
		r.has(s, fIterations, fIterations)
		return Compute{s.rounds}
	case "HTTP_CALL":
		if s.given&(fURL|fLatency) == 0 {
			r.Bad("must have url or latencyMs")
		}
		r.has(s, 0, fURL|fMethod|fLatency)
		return s.call
	case "FAIL":
		r.has(s, 0, fMessage|fErrorCode|fRetryable|fFailAttempts)
		return s.fail
	case "":
		if s.given&fType == 0 {
			r.BadIn("type", "is required")
		}
		return nil
	default:
		r.BadIn("type", "must be SLEEP, LOG, COMPUTE, HTTP_CALL or FAIL")
		return nil
	}
}

// stepField reads one member, and returns which it was.
func (r reader) stepField(s *rawStep) fields {
	switch string(r.Name) {
	case "type":
		s.typ = r.stepType()
		return fType
	case "message":
		s.log, _ = r.Text(MaxMessage)
		s.fail.Message = cmp.Or(s.log, DefaultFailMessage)
		return fMessage
	case "durationMs":
		s.duration = r.Millis(0, MaxSleep)
		return fDuration
	case "iterations":
		s.rounds = r.Integer(0, MaxIterations)
		return fIterations
	case "url":
		s.call.URL = r.Checked(checkURL)
		return fURL
	case "method":
		s.call.Method = r.Checked(checkMethod)
		return fMethod
	case "latencyMs":
		s.call.Latency = r.Millis(0, MaxSleep)
		return fLatency
	case "errorCode":
		s.fail.ErrorCode = r.Checked(WrongErrorCode)
		return fErrorCode
	case "retryable":
		s.fail.Retryable = r.Boolean()
		return fRetryable
	case "failAttempts":
		s.fail.Attempts = int(r.Integer(0, AllAttempts))
		return fFailAttempts
	default:
		r.Unknown()
		return 0
	}
}

// stepType avoids an allocation a step: the names are few.
func (r reader) stepType() string {
	v, ok := r.Scalar('"', "a string")
	if !ok {
		return ""
	}
	for _, known := range [...]string{"SLEEP", "LOG", "COMPUTE", "HTTP_CALL", "FAIL"} {
		if bytes.Equal(v[1:len(v)-1], []byte(known)) {
			return known
		}
	}
	return "?"
}

// has refuses a step that lacks what is required, or has what does not belong to its type.
func (r reader) has(s rawStep, required, allowed fields) {
	missing, extra := required&^s.given, s.given&^(allowed|fType)
	for i, name := range fieldNames {
		if f := fields(1) << i; missing&f != 0 {
			r.BadIn(name, "is required")
		} else if extra&f != 0 {
			r.BadIn(name, "does not belong to a step of type %s", s.typ)
		}
	}
}

func checkURL(s string) string {
	if len(s) > MaxURL {
		return fmt.Sprintf("must have at most %d characters", MaxURL)
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "must be an absolute http or https URL"
	}
	if u.User != nil {
		return "must not contain credentials"
	}
	return ""
}

func checkMethod(s string) string {
	switch s {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE":
		return ""
	}
	return "must be GET, HEAD, POST, PUT, PATCH or DELETE"
}
