package apibody

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Limits of an operation.
const (
	MaxOperationJobs  = 10_000
	MaxOperationBytes = 1 << 20 // the gateway checks it
)

// Operation is one command for many jobs: for the jobs in JobIDs, or for all that match Filter.
type Operation struct {
	Command        string
	When           When        // of a reschedule
	JobIDs         []uuid.UUID // each once
	Filter         *Filter     // nil: JobIDs
	IdempotencyKey string      // empty: none
}

// Filter selects jobs. Empty fields do not count.
type Filter struct {
	All            bool              `json:"all,omitempty"`    // alone, for all jobs
	Status         []jobstate.Status `json:"status,omitempty"` // one of these
	JobType        string            `json:"type,omitempty"`
	Queue          string            `json:"queue,omitempty"`
	Tag            string            `json:"tag,omitempty"`        // or its beginning and *
	Since          *time.Time        `json:"since,omitempty"`      // accepted from here on
	Until          *time.Time        `json:"until,omitempty"`      // accepted before this
	EndedSince     *time.Time        `json:"endedSince,omitempty"` // ended from here on
	EndedUntil     *time.Time        `json:"endedUntil,omitempty"` // ended before this
	OrderingKey    string            `json:"orderingKey,omitempty"`
	ErrorCode      string            `json:"errorCode,omitempty"`   // of the last failure
	NoErrorCode    bool              `json:"noErrorCode,omitempty"` // never failed, or with no code
	Payload        string            `json:"payload,omitempty"`     // a jobspec.PayloadFilter
	TraceID        *uuid.UUID        `json:"traceId,omitempty"`
	IdempotencyKey string            `json:"idempotencyKey,omitempty"`
	OwnerID        string            `json:"ownerId,omitempty"`
	After          *uuid.UUID        `json:"after,omitempty"` // jobs that depend on this job
	Search         string            `json:"q,omitempty"`
	BatchID        *uuid.UUID        `json:"batchId,omitempty"`
	FanOutID       *uuid.UUID        `json:"fanOutId,omitempty"` // jobs of its elements
}

// TagPrefix returns what one of the tags has to begin with, if the filter names only the beginning of a tag: order-*.
func (f *Filter) TagPrefix() (prefix string, is bool) { return strings.CutSuffix(f.Tag, "*") }

var operationCommands = []string{"cancel", "retry", "reschedule", "delete"}

// DecodeOperation reads the body of an operation. The error is an *apierror.Error.
func DecodeOperation(body []byte) (Operation, error) {
	r := newReader(body)
	var op Operation
	var when whenReader
	given := map[string]bool{}
	complete := r.Object(func() {
		given[string(r.Name)] = true
		switch string(r.Name) {
		case "command":
			op.Command = r.OneOf(operationCommands)
		case "jobIds":
			op.JobIDs = r.jobIDs()
		case "filter":
			op.Filter = r.filter()
		case "idempotencyKey":
			op.IdempotencyKey = r.Label(jobspec.MaxKey)
		default:
			if !when.member(r) {
				r.Unknown()
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
	p := r.Close()
	return op, p.Err("job request")
}

func (r reader) checkOperation(given map[string]bool) {
	if !given["command"] {
		r.BadAt("command", "is required")
	}
	switch {
	case given["jobIds"] && given["filter"]:
		r.BadAt("filter", "and jobIds exclude each other")
	case !given["jobIds"] && !given["filter"]:
		r.BadAt("filter", "is required, or jobIds")
	}
}

func (r reader) jobIDs() []uuid.UUID {
	var ids []uuid.UUID
	seen := map[uuid.UUID]bool{}
	before := len(r.Problems)
	whole := r.Array(MaxOperationJobs, func(int) {
		bad := len(r.Problems)
		id := r.UUID()
		if len(r.Problems) == bad && seen[id] {
			r.Bad("is there twice")
		}
		seen[id] = true
		ids = append(ids, id)
	})
	if whole && len(ids) == 0 && len(r.Problems) == before {
		r.Bad("must have at least one entry")
	}
	return ids
}

// filter reads a filter, which must have a condition, or request all jobs explicitly.
func (r reader) filter() *Filter {
	var f Filter
	named := 0
	before := len(r.Problems)
	whole := r.Object(func() {
		named++
		switch string(r.Name) {
		case "all":
			if f.All = r.Boolean(); !f.All {
				r.Bad("must be true, or left out")
			}
		case "status":
			f.Status = r.statuses()
		case "type":
			f.JobType = r.Checked(jobspec.WrongJobType)
		case "queue":
			f.Queue = r.Checked(jobspec.WrongQueue)
		case "tag":
			f.Tag = r.Label(jobspec.MaxTag)
		case "since":
			f.Since = r.Instant()
		case "until":
			f.Until = r.Instant()
		case "endedSince":
			f.EndedSince = r.Instant()
		case "endedUntil":
			f.EndedUntil = r.Instant()
		case "orderingKey":
			f.OrderingKey = r.Label(jobspec.MaxKey)
		case "errorCode":
			f.ErrorCode = r.Label(jobspec.MaxKey)
		case "noErrorCode":
			if f.NoErrorCode = r.Boolean(); !f.NoErrorCode {
				r.Bad("must be true, or left out")
			}
		case "payload":
			f.Payload = r.Checked(jobspec.WrongPayloadFilter)
		case "traceId":
			id := r.UUID()
			f.TraceID = &id
		case "idempotencyKey":
			f.IdempotencyKey = r.Label(jobspec.MaxKey)
		case "ownerId":
			f.OwnerID = r.Label(jobspec.MaxKey)
		case "after":
			id := r.UUID()
			f.After = &id
		case "q":
			f.Search = r.Label(jobspec.MaxKey)
		case "batchId":
			id := r.UUID()
			f.BatchID = &id
		case "fanOutId":
			id := r.UUID()
			f.FanOutID = &id
		case "jobType", "tags":
			r.UnknownBut(jobspec.OtherName[string(r.Name)])
		default:
			r.Unknown()
		}
	})
	switch {
	case !whole || len(r.Problems) > before:
	case named == 0:
		r.Bad(`must name something, or say {"all": true}`)
	case f.All && named > 1:
		r.BadIn("all", "and the other fields exclude each other")
	case f.NoErrorCode && f.ErrorCode != "":
		r.BadIn("noErrorCode", "and errorCode exclude each other")
	}
	return &f
}

func (r reader) statuses() []jobstate.Status {
	var statuses []jobstate.Status
	before := len(r.Problems)
	whole := r.Array(len(jobstate.All()), func(int) {
		s, ok := r.Text(jobspec.MaxKey)
		status := jobstate.Status(s)
		switch {
		case ok && !status.Valid():
			r.Bad("%s", jobstate.Unknown(s))
		case ok && slices.Contains(statuses, status):
			r.Bad("is there twice")
		}
		statuses = append(statuses, status)
	})
	if whole && len(statuses) == 0 && len(r.Problems) == before {
		r.Bad("must have at least one entry")
	}
	return statuses
}
