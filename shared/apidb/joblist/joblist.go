// Package joblist reads jobs in the order of their ids, for lists, searches and operations. It makes each statement
// from a table of conditions and a table of sources. All text is in this package, and all values are parameters. A new
// condition is a field of apibody.Filter and a line of allConditions.
//
// Why these statements are made in Go: docs/decisions/api.md#a-list-is-put-together-in-go
package joblist

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/idtime"
)

// List selects jobs by conditions, all of which must hold, and a part of them by ids. A zero value excludes no job.
type List struct {
	apibody.Filter
	By         SearchBy    // how Search is looked for
	Owner      apidb.Owner // whose jobs are visible
	JobID      *uuid.UUID
	AcceptedBy *time.Time
	AfterID    uuid.UUID     // only higher ids
	BeforeID   uuid.UUID     // only lower ids
	Slack      time.Duration // how far the time in an id may differ from created_at
	MostSeen   int           // how many jobs are looked at, however few match
	Max, Skip  int           // of the matching ones
}

// Seen is what was found among the jobs that were looked at.
type Seen struct {
	JobIDs []uuid.UUID // at most List.Max matching ones
	Fit    int64       // how many match
	Seen   int64       // how many jobs were looked at
	LastID uuid.UUID   // the last of them
}

// DB runs a statement: a pool or a transaction.
type DB interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Newest reads from the newest job on.
func (l List) Newest(ctx context.Context, db DB) (Seen, error) { return l.read(ctx, db, newest) }

// Oldest reads from the oldest job on. It needs no right to read snapshots.
func (l List) Oldest(ctx context.Context, db DB) (Seen, error) { return l.read(ctx, db, oldest) }

// order is a direction of reading.
type order struct {
	name, by, back string
	inMessage      string // whether @searchText is in the message of the last failure
}

var (
	newest = order{name: "JobsNewest", by: "job_id desc", back: "job_id", inMessage: `coalesce((
            select position(lower(@searchText) in lower(substring(left(failed.snapshot, 32768)
                from '"lastError":\{"errorCode":"(?:[^"\\]|\\.)*","message":"(?!sealed:)((?:[^"\\]|\\.)*)"'))) > 0
            from jobs as failed where failed.job_id = source.job_id
        ), false)`}
	oldest = order{name: "JobsOldest", by: "job_id", back: "job_id desc", inMessage: "failure_has(job_id, @searchText)"}
)

// mostKept is the number of conditions up to which a connection keeps the plan of a list. There are so many
// combinations of more that their plans would displace all others: the server plans these lists each time, which takes
// 0.2 to 2 ms.
const mostKept = 2

func (l List) read(ctx context.Context, db DB, o order) (seen Seen, err error) {
	if !l.narrow() {
		return Seen{}, nil
	}
	text, conditions := l.text(o)
	args := []any{l.args()}
	if conditions > mostKept {
		args = []any{pgx.QueryExecModeCacheDescribe, l.args()}
	}
	err = db.QueryRow(ctx, text, args...).Scan(&seen.JobIDs, &seen.Fit, &seen.Seen, &seen.LastID)
	return seen, err
}

// narrow makes the list that of one owner, if a condition names it, and that of ended jobs, if a condition is about
// their end. It reports whether the list can have any job.
func (l *List) narrow() (some bool) {
	if len(l.Status) == 0 && (l.EndedSince != nil || l.EndedUntil != nil) {
		l.Status = terminal
	}
	l.Owner, some = l.Owner.Only(l.OwnerID)
	return some
}

// text returns the statement of the list, and how many conditions it has. It does not depend on their values.
func (l *List) text(o order) (text string, conditions int) {
	given := slices.DeleteFunc(slices.Clone(allConditions), func(c condition) bool { return c.value(l) == nil })
	sources, _ := l.sources(o)
	return o.text(given, sources), len(given)
}

// Every returns the statements of Newest and Oldest with every condition and every source, for the test of rights.
func Every() (sql [2]string) {
	return [2]string{newest.text(allConditions, allSources), oldest.text(allConditions, allSources)}
}

func (o order) text(conditions []condition, sources []source) string {
	fits := "true"
	for _, c := range conditions {
		fits += "\n        and " + strings.ReplaceAll(c.where, "[message]", o.inMessage)
	}
	return fmt.Sprintf(`-- name: %[1]s :one
with seen as materialized (
    select job_id, (%[2]s) as fits
    from (%[3]s) as source
)
select
    array(select job_id from seen where fits order by %[4]s limit @max offset @skip)::uuid[],
    (select count(*) from seen where fits),
    (select count(*) from seen),
    coalesce((select job_id from seen order by %[5]s limit 1), @afterId)`,
		o.name, fits, from(sources, o), o.by, o.back)
}

// from reads the jobs of all sources together in their order, each of them once. A source reads no more than are looked
// at in all: the planner may not merge sources, but read each to its end.
func from(sources []source, o order) string {
	parts := make([]string, len(sources))
	for i, s := range sources {
		parts[i] = s.text(i+1, o)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return fmt.Sprintf("select distinct on (job_id) * from (\n(%s)\n    ) as several order by %s limit @mostSeen",
		strings.Join(parts, ")\nunion all\n("), o.by)
}

// args returns the values of all parameters.
func (l *List) args() pgx.NamedArgs {
	after, before := l.ids()
	trace := cmp.Or(l.TraceID, l.asID())
	args := pgx.NamedArgs{
		"afterId": after, "beforeId": before, "mostSeen": l.MostSeen, "max": l.Max, "skip": l.Skip,
		"job": cmp.Or(l.JobID, l.asID()), "trace": trace, "traceEnds": afterNear(trace),
		"key": cmp.Or(l.IdempotencyKey, l.Search), "code": cmp.Or(l.ErrorCode, l.Search), "search": l.Search,
		"payloadPath": l.payloadFilter().Path, "shelves": l.shelves(), "states": l.states(),
	}
	for _, c := range allConditions {
		args[c.name] = c.value(l)
	}
	return args
}

// ids returns the ids between which all jobs of the list are.
func (l *List) ids() (after, before uuid.UUID) {
	after, before = l.AfterID, uuid.Max
	if l.BeforeID != uuid.Nil {
		before = l.BeforeID
	}
	if l.Since != nil {
		after = idtime.Later(after, idtime.First(l.Since.Add(-l.Slack)))
	}
	if l.After != nil {
		after = idtime.Later(after, idtime.FirstAfter(*l.After, l.Slack))
	}
	for _, until := range []*time.Time{l.Until, l.EndedUntil} { // a job is accepted before its end
		if until != nil {
			before = idtime.Earlier(before, idtime.First(until.Add(l.Slack)))
		}
	}
	return after, before
}
