package joblist

import (
	"slices"
	"strings"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/shelves"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// condition excludes jobs.
type condition struct {
	name  string          // of its parameter
	where string          // on a row of source
	value func(*List) any // nil: the list does not have this condition
}

// ended is the condition that a job has ended. The updated_at of an ended job is its end.
var ended = "status in ('" + strings.Join(shelves.Texts(terminal), "', '") + "') and updated_at "

var terminal = slices.DeleteFunc(jobstate.All(), func(s jobstate.Status) bool { return !s.Terminal() })

// allConditions are those that a list can have. The last ones cost the most.
var allConditions = []condition{
	{"owner", "owner_id = @owner", func(l *List) any { return given(l.Owner.Filter()) }},
	{"jobId", "job_id = @jobId", func(l *List) any { return given(l.JobID) }},
	{"status", "status = any (@status)", func(l *List) any {
		if len(l.Status) == 0 {
			return nil
		}
		return shelves.Texts(l.Status)
	}},
	{"type", "job_type = @type", func(l *List) any { return given(l.JobType) }},
	{"queue", "queue = @queue", func(l *List) any { return given(l.Queue) }},
	{"tag", "@tag = any (tags)", (*List).tag},
	{"tagPrefix", "exists (select from unnest(tags) as tag where starts_with(tag, @tagPrefix))", (*List).tagPrefix},
	{"since", "created_at >= @since", func(l *List) any { return given(l.Since) }},
	{"until", "created_at < @until", func(l *List) any { return given(l.Until) }},
	{"acceptedBy", "created_at <= @acceptedBy", func(l *List) any { return given(l.AcceptedBy) }},
	{"endedSince", ended + ">= @endedSince", func(l *List) any { return given(l.EndedSince) }},
	{"endedUntil", ended + "< @endedUntil", func(l *List) any { return given(l.EndedUntil) }},
	{"orderingKey", "ordering_key = @orderingKey", func(l *List) any { return given(l.OrderingKey) }},
	{"errorCode", "error_code = @errorCode", func(l *List) any { return given(l.ErrorCode) }},
	{"noErrorCode", "error_code is null", func(l *List) any { return given(l.NoErrorCode) }},
	{"traceId", "trace_id = @traceId", func(l *List) any { return given(l.TraceID) }},
	{"idempotencyKey", "idempotency_key = @idempotencyKey", func(l *List) any { return given(l.IdempotencyKey) }},
	{"batchId", "batch_id = @batchId", func(l *List) any { return given(l.BatchID) }},
	{"fanOutId", "fan_out_id = @fanOutId", func(l *List) any { return given(l.FanOutID) }},
	{"after", "@after = any (after_ids)", func(l *List) any { return given(l.After) }},
	{"searchId", "(idempotency_key = @search or job_id = @searchId or trace_id = @searchId)", (*List).searchID},
	{"searchName", "(idempotency_key = @search or error_code = @search)", (*List).searchName},
	{"payload", "payload_has(job_id, @payloadPath, @payload)", (*List).payload},
	{"searchText", `case -- the message of a failure is read only if nothing else decides
            when idempotency_key = @search or error_code = @search then true
            when exists (select from unnest(tags) as tag where position(lower(@search) in lower(tag)) > 0) then true
            when error_code is null then false
            else [message]
        end`, (*List).searchText},
}

func (l *List) tag() any {
	if _, is := l.TagPrefix(); is {
		return nil
	}
	return given(l.Tag)
}

func (l *List) tagPrefix() any {
	if prefix, is := l.TagPrefix(); is {
		return prefix
	}
	return nil
}

func (l *List) payload() any {
	if l.Payload == "" {
		return nil
	}
	return l.payloadFilter().Value
}

func (l *List) payloadFilter() jobspec.PayloadFilter {
	c, _ := jobspec.ReadPayloadFilter(l.Payload) // an empty one has no path
	return c
}

// given returns the value of a condition; nil if it is the zero value.
func given[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

// timed are the conditions for which ids leave few jobs that do not match.
var timed = []string{"since", "until", "acceptedBy"}

// Sparse reports whether matching jobs of the list may stand far apart in its sources.
func (l List) Sparse() bool {
	l.narrow()
	_, met := l.sources(newest)
	return slices.ContainsFunc(allConditions, func(c condition) bool {
		return c.value(&l) != nil && !slices.Contains(met, c.name) && !slices.Contains(timed, c.name)
	})
}
