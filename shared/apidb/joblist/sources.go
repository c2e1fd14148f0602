package joblist

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/shelves"
)

// source is a part of an index: the jobs that have a value. The conditions of the list are checked on its jobs, too.
type source struct {
	index  string
	column string // empty: the whole index
	value  string // [n] is the source's number among those of a list
	where  string // the other conditions of the part
	// whole: the index is not in the order of ids, and all jobs with the value are read; these are few. Otherwise the
	// planner could walk by id until it has found enough.
	whole bool
}

// Why so few indexes serve all lists: docs/decisions/api.md#lists-add-no-index-entry-that-every-job-pays-for
var (
	byID    = source{index: "jobs_pkey"}
	byJob   = source{index: "jobs_pkey", where: "job_id = @job"}
	byShelf = source{index: "jobs_shelved", column: "shelf_of(status, version)", value: "(@shelves::int[])[[n]]"}
	// Completed jobs have a shelf in the index of owners.
	byOwnedShelf = source{
		index: "jobs_owned", column: "coalesce(shelf_of(status, version), 10::smallint)",
		value: "(@shelves::int[])[[n]]", where: owned,
	}
	byOrder      = source{index: "jobs_of_key", column: "ordering_key", value: "@orderingKey"}
	byOwnedOrder = source{index: "jobs_of_owners_key", column: "ordering_key", value: "@orderingKey", where: owned}
	byCode       = source{index: "jobs_of_error", column: "error_code", value: "@code"}
	byOwnedCode  = source{index: "jobs_of_owners_error", column: "error_code", value: "@code", where: owned}
	byKey        = source{index: "jobs_idempotency", column: "idempotency_key", value: "@key", whole: true}
	byOwnedKey   = source{
		index: "jobs_idempotency", column: "idempotency_key", value: "@key", where: "owner_id = @owner", whole: true,
	}
	byBatch = source{
		index: "jobs_of_batch", column: "status", value: "(@states::text[])[[n]]", where: "batch_id = @batchId",
	}
	byFanOut = source{index: "jobs_elements", column: "fan_out_id", value: "@fanOutId", whole: true} // at most 10,000
	// The jobs that depend on a job have its owner.
	byAfter = source{
		index: "jobs_tied", column: "owner_id", where: "after_ids is not null",
		value: "coalesce(@owner, (select named.owner_id from jobs as named where named.job_id = @after))",
	}
	// The jobs of a trace, and those of the same 256 ms, which are in no index of traces.
	byTrace = source{
		index: "jobs_of_trace", column: "trace_id", value: "@trace",
		where: "(trace_id >= job_id or substring(uuid_send(trace_id) for 5) <> substring(uuid_send(job_id) for 5))",
	}
	byTime = source{index: "jobs_pkey", where: "job_id > @trace and job_id < @traceEnds"}
)

var allSources = []source{
	byID, byJob, byShelf, byOwnedShelf, byOrder, byOwnedOrder, byCode, byOwnedCode, byKey, byOwnedKey, byBatch, byFanOut,
	byAfter, byTrace, byTime,
}

const owned = "owner_id = @owner and owner_id <> ''"

const columns = `job_id, owner_id, job_type, queue, tags, trace_id, created_at, status, updated_at,
            ordering_key, error_code, idempotency_key, after_ids, batch_id, fan_out_id`

// text returns the statement that reads the n-th source.
func (s source) text(n int, o order) string {
	var conds []string
	if s.column != "" {
		conds = append(conds, s.column+" = "+s.value)
	}
	if s.column != "" && !strings.Contains(s.value, "[n]") {
		// The range excludes nothing. It makes the planner take the source for small: otherwise it walks by id where it
		// believes that many jobs have the value, though none of the newest may have it. Shelves and states are left
		// large: the planner merges them as they are read, where it would sort small ones.
		conds = append(conds, s.column+" between "+s.value+" and "+s.value)
	}
	if s.where != "" {
		conds = append(conds, s.where)
	}
	from := "jobs"
	if s.whole {
		from = fmt.Sprintf("(select %s from jobs where %s offset 0) as whole", columns, strings.Join(conds, " and "))
		conds = nil
	}
	conds = append(conds, "job_id > @afterId and job_id < @beforeId")
	return strings.ReplaceAll(fmt.Sprintf(`
        select %s
        from %s
        where %s
        order by %s limit @mostSeen`, columns, from, strings.Join(conds, " and "), o.by), "[n]", fmt.Sprint(n))
}

// sources returns those with the fewest jobs that do not match, and the conditions that all their jobs meet.
func (l *List) sources(o order) (chosen []source, met []string) {
	key, ordered, code, shelf, whose := byKey, byOrder, byCode, byShelf, ""
	if !l.Owner.IsEveryone() {
		key = byOwnedKey
	}
	if l.Owner.Indexed() {
		ordered, code, shelf, whose = byOwnedOrder, byOwnedCode, byOwnedShelf, "owner"
	}
	one := func(s source, met ...string) ([]source, []string) { return []source{s}, met }
	switch {
	case l.JobID != nil:
		return one(byJob, "jobId")
	case l.FanOutID != nil:
		return one(byFanOut, "fanOutId")
	case l.IdempotencyKey != "":
		return one(key, "idempotencyKey", "owner")
	case l.TraceID != nil:
		return []source{byTrace, byTime}, nil
	case l.After != nil && (o == newest || !l.Owner.IsEveryone()): // an operation must not end when the job is deleted
		return one(byAfter)
	case l.BatchID != nil:
		return slices.Repeat([]source{byBatch}, len(l.states())), []string{"batchId", "status"}
	case l.OrderingKey != "":
		return one(ordered, "orderingKey", whose)
	case l.ErrorCode != "":
		return one(code, "errorCode", whose)
	case l.searchID() != nil:
		return []source{key, byJob, byTrace, byTime}, nil
	case l.searchName() != nil:
		return []source{key, code}, []string{"searchName", whose}
	case len(l.shelves()) > 0:
		return slices.Repeat([]source{shelf}, len(l.shelves())), []string{"status", whose}
	default:
		return one(byID)
	}
}

// shelves are those of the list's states in the index that the source for states uses.
func (l *List) shelves() []int32 {
	if l.Owner.Indexed() {
		return shelves.OwnedOf(l.Status...)
	}
	return shelves.Of(l.Status...)
}

func (l *List) states() []string { return shelves.States(l.Status) }

// afterNear returns the first id that is too late for a job to be found by the time in its trace id. As in the index
// jobs_of_trace, 40 bits of a UUIDv7 are its time in steps of 256 ms.
func afterNear(trace *uuid.UUID) *uuid.UUID {
	if trace == nil {
		return nil
	}
	var after uuid.UUID
	copy(after[:5], trace[:5])
	for i := 4; i >= 0; i-- {
		if after[i]++; after[i] != 0 {
			return &after
		}
	}
	return &uuid.Max
}
