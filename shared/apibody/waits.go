package apibody

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// Limits of what handlers wait for.
const (
	MaxWaitsBytes  = 12 << 20 // 20 jobs, which is what the kits send at once, of jobspec.MaxJobBytes each
	MaxWaits       = 100      // of one request
	MaxWaitName    = 200
	MaxMatches     = 20 // members that a wait names
	maxEventType   = 255
	maxMatchPath   = 255
	maxMatchValue  = 1 << 10
	maxWaitTimeout = 366 * 24 * time.Hour

	// MaxWorkPause is the longest snooze.
	MaxWorkPause = maxWorkPause
)

// WorkWaits is what the handler of an attempt waits for.
type WorkWaits struct {
	OfAttempt

	Waits []WorkWait
}

// WorkWait is one wait: for an event, or for the end of a job that the request makes.
type WorkWait struct {
	Name    string
	Group   string        // empty: it wakes its job alone
	Timeout time.Duration // 0: none
	Event   *EventWait    // nil: Job is given
	Job     json.RawMessage
}

// EventWait is what a wait names of an event.
type EventWait struct {
	Type    string
	Source  string                     // empty: any
	Subject string                     // empty: any
	Match   map[string]json.RawMessage // by path: scalars that the data must have
}

// DecodeWorkWaits reads a request to wait. It returns all problems as an *apierror.Error. A WorkWait.Job is not
// checked.
func DecodeWorkWaits(body []byte) (WorkWaits, error) {
	var all WorkWaits
	r := newReader(body)
	complete := r.Object(func() {
		switch string(r.Name) {
		case "worker":
			all.Worker = r.Label(maxWorkerChars)
		case "token":
			all.Token = r.Label(maxToken)
		case "waits":
			r.Array(MaxWaits, func(int) { all.Waits = append(all.Waits, r.workWait()) })
		default:
			r.Unknown()
		}
	})
	if complete {
		all.check(r)
	}
	return all, r.Close().Err("wait")
}

func (w *WorkWaits) check(r reader) {
	switch {
	case w.Worker == "":
		r.BadAt("worker", "is required")
	case w.Token == "":
		r.BadAt("token", "is required")
	case len(w.Waits) == 0:
		r.BadAt("waits", "must have at least one entry")
	}
	names := map[string]bool{}
	for _, wait := range w.Waits {
		if names[wait.Name] {
			r.BadAt("waits", "%q is there twice", wait.Name)
		}
		names[wait.Name] = true
	}
}

func (r reader) workWait() (w WorkWait) {
	complete := r.Object(func() {
		switch string(r.Name) {
		case "name":
			w.Name = r.Label(MaxWaitName)
		case "group":
			if !r.Null() {
				w.Group = r.Label(MaxWaitName)
			}
		case "timeoutMs":
			if !r.Null() {
				w.Timeout = r.Millis(time.Millisecond, maxWaitTimeout)
			}
		case "event":
			if !r.Null() {
				event := r.eventWait()
				w.Event = &event
			}
		case "job":
			if !r.Null() {
				w.Job = slices.Clone(json.RawMessage(r.Raw()))
			}
		default:
			r.Unknown()
		}
	})
	switch {
	case !complete:
	case w.Name == "":
		r.BadIn("name", "is required")
	case (w.Event == nil) == (w.Job == nil):
		r.BadIn("event", "either event or job is required")
	case w.Job != nil && w.Timeout != 0:
		r.BadIn("timeoutMs", "goes only with event: a job has a timeoutMs of its own")
	}
	return w
}

func (r reader) eventWait() (e EventWait) {
	complete := r.Object(func() {
		switch string(r.Name) {
		case "type":
			e.Type = r.Label(maxEventType)
		case "source":
			if !r.Null() {
				e.Source = r.Label(jobspec.MaxMessage)
			}
		case "subject":
			if !r.Null() {
				e.Subject = r.Label(jobspec.MaxMessage)
			}
		case "match":
			if !r.Null() {
				e.Match = r.match()
			}
		default:
			r.Unknown()
		}
	})
	if complete && e.Type == "" {
		r.BadIn("type", "is required")
	}
	return e
}

func (r reader) match() map[string]json.RawMessage {
	match := map[string]json.RawMessage{}
	r.Object(func() {
		path := string(r.Name)
		kind := r.Peek()
		value := r.Raw()
		switch {
		case len(path) == 0 || len(path) > maxMatchPath:
			r.Bad("a path has 1 to %d bytes", maxMatchPath)
		case kind == '{' || kind == '[':
			r.Bad("must be a text, a number, a boolean or null; name a member of an object by its path, as in order.id")
		case len(value) > maxMatchValue:
			r.Bad("may have at most %d bytes", maxMatchValue)
		case len(match) == MaxMatches:
			r.Bad("there are more than %d members", MaxMatches)
		default:
			match[path] = slices.Clone(json.RawMessage(value))
		}
	})
	return match
}
