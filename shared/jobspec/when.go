package jobspec

import "time"

// When is the instant to which a job is put off: RunAt, or where that is nil so long from now.
type When struct {
	RunAt *time.Time // UTC, in microseconds; the past is now
	Delay time.Duration
}

// DecodeWhen reads the body of a reschedule: {"runAt"} or {"delayMs"}. The error is an *apierror.Error.
func DecodeWhen(body []byte) (When, error) {
	if p := scanProblems(body, ""); p != nil {
		return When{}, p.err()
	}
	r := newReader(body, "")
	var w whenReader
	complete := r.object(func() {
		if !w.member(r) {
			r.unknown()
		}
	})
	if complete {
		w.check(r, true)
	}
	p := r.close()
	return w.When, p.err()
}

// whenReader reads the members that say when.
type whenReader struct {
	When
	hasDelay bool
}

// member reads the member that comes next, if it is one of its own.
func (w *whenReader) member(r *reader) bool {
	switch string(r.name) {
	case "runAt":
		w.RunAt = r.instant()
		if w.RunAt != nil && time.Until(*w.RunAt) > MaxAhead {
			r.bad("must be at most %d days ahead", MaxAhead/(24*time.Hour))
		}
	case "delayMs":
		w.hasDelay = true
		w.Delay = r.millis(0, MaxAhead)
	default:
		return false
	}
	return true
}

// check returns what is wrong with both together, where one is wanted and where none is.
func (w *whenReader) check(r *reader, wanted bool) {
	switch given := w.RunAt != nil || w.hasDelay; {
	case w.RunAt != nil && w.hasDelay:
		r.badAt("delayMs", bothTimes)
	case wanted && !given:
		r.badAt("runAt", "is required, or delayMs")
	case !wanted && given:
		r.badAt("runAt", "and delayMs are for the command reschedule only")
	}
}
