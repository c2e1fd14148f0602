package apibody

import (
	"time"

	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// When is the instant to which a job is postponed: RunAt or, if that is nil, the time Delay from now.
type When struct {
	RunAt *time.Time // UTC, in microseconds; the past is now
	Delay time.Duration
}

// DecodeWhen reads the body of a reschedule: {"runAt"} or {"delayMs"}. The error is an *apierror.Error.
func DecodeWhen(body []byte) (When, error) {
	r := newReader(body)
	var w whenReader
	complete := r.Object(func() {
		if !w.member(r) {
			r.Unknown()
		}
	})
	if complete {
		w.check(r, true)
	}
	p := r.Close()
	return w.When, p.Err("job request")
}

// whenReader reads the members runAt and delayMs.
type whenReader struct {
	When
	hasDelay bool
}

// member reads the next member if it is runAt or delayMs.
func (w *whenReader) member(r reader) bool {
	switch string(r.Name) {
	case "runAt":
		w.RunAt = r.Instant()
		if w.RunAt != nil && time.Until(*w.RunAt) > jobspec.MaxAhead {
			r.Bad("must be at most %d days ahead", jobspec.MaxAhead/(24*time.Hour))
		}
	case "delayMs":
		w.hasDelay = true
		w.Delay = r.Millis(0, jobspec.MaxAhead)
	default:
		return false
	}
	return true
}

// check notes a problem if both members are given, if neither is although one is wanted, or if one is although none is
// wanted.
func (w *whenReader) check(r reader, wanted bool) {
	switch given := w.RunAt != nil || w.hasDelay; {
	case w.RunAt != nil && w.hasDelay:
		r.BadAt("delayMs", "and runAt exclude each other")
	case wanted && !given:
		r.BadAt("runAt", "is required, or delayMs")
	case !wanted && given:
		r.BadAt("runAt", "and delayMs are for the command reschedule only")
	}
}
