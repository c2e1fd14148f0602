package jobspec

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Limits of an operation.
const (
	MaxOperationJobs  = 10_000
	MaxOperationBytes = 1 << 20 // checked by who reads the body
)

// Operation is one command for many jobs: for those of JobIDs, or for all that match Filter.
type Operation struct {
	Command        string
	When           When        // of a reschedule
	JobIDs         []uuid.UUID // each once
	Filter         *Filter     // nil: JobIDs
	IdempotencyKey string      // empty: none
}

// Filter chooses jobs; what is empty does not count.
type Filter struct {
	All            bool              `json:"all,omitempty"`    // said where nothing else is
	Status         []jobstate.Status `json:"status,omitempty"` // one of these
	JobType        string            `json:"type,omitempty"`
	Queue          string            `json:"queue,omitempty"`
	Tag            string            `json:"tag,omitempty"`
	Since          *time.Time        `json:"since,omitempty"` // accepted from here on
	Until          *time.Time        `json:"until,omitempty"` // accepted before this
	OrderingKey    string            `json:"orderingKey,omitempty"`
	ErrorCode      string            `json:"errorCode,omitempty"`   // of the last failure
	NoErrorCode    bool              `json:"noErrorCode,omitempty"` // never failed, or with no code
	TraceID        *uuid.UUID        `json:"traceId,omitempty"`
	IdempotencyKey string            `json:"idempotencyKey,omitempty"`
	OwnerID        string            `json:"ownerId,omitempty"`
	After          *uuid.UUID        `json:"after,omitempty"` // come after this job
	Search         string            `json:"q,omitempty"`
}

// Narrow reports whether the filter has a field that bulk did not know before migration 15 of the api schema.
func (f *Filter) Narrow() bool {
	return f.ErrorCode != "" || f.TraceID != nil || f.IdempotencyKey != ""
}

// Narrower reports whether the filter has a field that bulk did not know before migration 21.
func (f *Filter) Narrower() bool {
	return f.NoErrorCode || f.After != nil || f.Search != ""
}

var operationCommands = []string{"cancel", "retry", "reschedule", "delete"}

// DecodeOperation reads the body of an operation. The error is an *apierror.Error.
func DecodeOperation(body []byte) (Operation, error) {
	if p := scanProblems(body, ""); p != nil {
		return Operation{}, p.err()
	}
	r := newReader(body, "")
	var op Operation
	var when whenReader
	given := map[string]bool{}
	complete := r.object(func() {
		given[string(r.name)] = true
		switch string(r.name) {
		case "command":
			op.Command = r.oneOf(operationCommands)
		case "jobIds":
			op.JobIDs = r.jobIDs()
		case "filter":
			op.Filter = r.filter()
		case "idempotencyKey":
			op.IdempotencyKey = r.label(MaxKey)
		default:
			if !when.member(r) {
				r.unknown()
			}
		}
	})
	if complete {
		r.checkOperation(given)
		if op.Command != "" {
			when.check(r, op.Command == "reschedule")
		}
	}
	op.When = when.When
	p := r.close()
	return op, p.err()
}

func (r *reader) checkOperation(given map[string]bool) {
	if !given["command"] {
		r.badAt("command", "is required")
	}
	switch {
	case given["jobIds"] && given["filter"]:
		r.badAt("filter", "and jobIds exclude each other")
	case !given["jobIds"] && !given["filter"]:
		r.badAt("filter", "is required, or jobIds")
	}
}

// oneOf reads a string that is one of some; else it is empty.
func (r *reader) oneOf(some []string) string {
	s, ok := r.text(MaxKey)
	if ok && !slices.Contains(some, s) {
		r.bad("must be one of %s", strings.Join(some, ", "))
		return ""
	}
	return s
}

func (r *reader) jobIDs() []uuid.UUID {
	var ids []uuid.UUID
	seen := map[uuid.UUID]bool{}
	before := len(r.problems)
	whole := r.array(MaxOperationJobs, func(int) {
		bad := len(r.problems)
		id := r.uuid()
		if len(r.problems) == bad && seen[id] {
			r.bad("is there twice")
		}
		seen[id] = true
		ids = append(ids, id)
	})
	if whole && len(ids) == 0 && len(r.problems) == before {
		r.bad("must have at least one entry")
	}
	return ids
}

// filter reads one that names something, or says that it means all jobs.
func (r *reader) filter() *Filter {
	var f Filter
	named := 0
	before := len(r.problems)
	whole := r.object(func() {
		named++
		switch string(r.name) {
		case "all":
			if f.All = r.boolean(); !f.All {
				r.bad("must be true, or left out")
			}
		case "status":
			f.Status = r.statuses()
		case "type":
			f.JobType = r.checked(checkJobType)
		case "queue":
			f.Queue = r.checked(checkQueue)
		case "tag":
			f.Tag = r.label(MaxTag)
		case "since":
			f.Since = r.instant()
		case "until":
			f.Until = r.instant()
		case "orderingKey":
			f.OrderingKey = r.label(MaxKey)
		case "errorCode":
			f.ErrorCode = r.label(MaxKey)
		case "noErrorCode":
			if f.NoErrorCode = r.boolean(); !f.NoErrorCode {
				r.bad("must be true, or left out")
			}
		case "traceId":
			id := r.uuid()
			f.TraceID = &id
		case "idempotencyKey":
			f.IdempotencyKey = r.label(MaxKey)
		case "ownerId":
			f.OwnerID = r.label(MaxKey)
		case "after":
			id := r.uuid()
			f.After = &id
		case "q":
			f.Search = r.label(MaxKey)
		default:
			r.unknown()
		}
	})
	switch {
	case !whole || len(r.problems) > before:
	case named == 0:
		r.bad(`must name something, or say {"all": true}`)
	case f.All && named > 1:
		r.badIn("all", "and the other fields exclude each other")
	case f.NoErrorCode && f.ErrorCode != "":
		r.badIn("noErrorCode", "and errorCode exclude each other")
	}
	return &f
}

func (r *reader) statuses() []jobstate.Status {
	var statuses []jobstate.Status
	before := len(r.problems)
	whole := r.array(len(jobstate.All()), func(int) {
		s, ok := r.text(MaxKey)
		status := jobstate.Status(s)
		switch {
		case ok && !status.Valid():
			r.bad("%s", jobstate.Unknown(s))
		case ok && slices.Contains(statuses, status):
			r.bad("is there twice")
		}
		statuses = append(statuses, status)
	})
	if whole && len(statuses) == 0 && len(r.problems) == before {
		r.bad("must have at least one entry")
	}
	return statuses
}
