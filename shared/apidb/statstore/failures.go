package statstore

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

const (
	// mostGroups bounds how many groups a read looks at. Handlers choose the error codes.
	mostGroups = 5000
	// failureHours is for how many hours failures are counted by the hour: a day, and the day before to compare with.
	failureHours = 48
	// rememberFailures is how long a group without jobs is kept.
	rememberFailures = 30 * 24 * time.Hour
)

// FailureGroups are an owner's FAILED jobs by type and error code, the largest group first. Callers share the slice,
// and must not change it.
type FailureGroups struct {
	At       time.Time
	Groups   []FailureGroup
	Complete bool // false: there are more groups than mostGroups, and only the largest ones are here
}

// FailureGroup counts the jobs of one type that failed with one error code.
type FailureGroup struct {
	JobType   string
	ErrorCode string // empty: none
	Jobs      int64  // that are FAILED now
	FirstAt   time.Time
	LastAt    time.Time
	LastID    uuid.UUID // the job that failed at LastAt; it may have been retried or deleted since
	Hours     [24]int64 // how many failed in each of the last 24 hours of the clock, the current one last
	DayBefore int64     // how many failed in the 24 hours before Hours
}

// IsNew reports whether the group was not seen before Hours.
func (g *FailureGroup) IsNew(at time.Time) bool { return !g.FirstAt.Before(HoursSince(at)) }

// HoursSince returns when the first of a group's Hours began.
func HoursSince(at time.Time) time.Time { return at.UTC().Truncate(time.Hour).Add(-23 * time.Hour) }

type failureKey struct {
	of                 apidb.Owner
	jobType, errorCode string
}

// failure is a row of failures. Its lastAt is zero until a failure is added: an entry may only lower kept.
type failure struct {
	kept            int64
	firstAt, lastAt time.Time
	lastID          uuid.UUID
	hours           map[int64]int64 // by hours since 1970
}

type failures map[failureKey]*failure

func (fs failures) of(key failureKey) *failure {
	if fs[key] == nil {
		fs[key] = &failure{hours: map[int64]int64{}}
	}
	return fs[key]
}

func (f *failure) addEntry(e *gen.FailureEntry) {
	f.kept += int64(e.Kept)
	if e.Failed > 0 {
		f.see(*e.FirstAt, *e.LastAt, *e.LastID)
		f.hours[hourOf(*e.LastAt)] += int64(e.Failed)
	}
}

func (f *failure) addRow(row *gen.Failure) {
	f.kept += row.Kept
	f.see(row.FirstAt, row.LastAt, row.LastID)
	var hours map[int64]int64
	if json.Unmarshal(row.Hours, &hours) == nil { // statistics are not worth an error
		for hour, n := range hours {
			f.hours[hour] += n
		}
	}
}

func (f *failure) see(firstAt, lastAt time.Time, lastID uuid.UUID) {
	if f.lastAt.IsZero() || firstAt.Before(f.firstAt) {
		f.firstAt = firstAt
	}
	if !lastAt.Before(f.lastAt) {
		f.lastAt, f.lastID = lastAt, lastID
	}
}

func hourOf(at time.Time) int64 { return at.Unix() / 3600 }

// sumFailures sums up new entries. The caller holds the lock.
func sumFailures(ctx context.Context, q *gen.Queries, now time.Time) (more bool, err error) {
	entries, err := q.FailureTakeEntries(ctx, mostEntries)
	if err != nil {
		return false, err
	}
	sums := failures{}
	for i := range entries {
		e := &entries[i]
		sums.of(failureKey{apidb.Everyone, e.JobType, e.ErrorCode}).addEntry(e)
		sums.of(failureKey{apidb.OwnerOf(e.OwnerID), e.JobType, e.ErrorCode}).addEntry(e)
	}
	if err := sums.put(ctx, q, now); err != nil {
		return false, err
	}
	old := gen.FailuresForgetParams{Before: now.Add(-rememberFailures), MaxFailures: mostTallies}
	gone, err := q.FailuresForget(ctx, old)
	return len(entries) == mostEntries || gone == mostTallies, err
}

// addStored adds the stored rows of the keys.
func (fs failures) addStored(ctx context.Context, q *gen.Queries, keys []failureKey) error {
	if len(keys) == 0 {
		return nil
	}
	var find gen.FailuresFindParams
	for _, key := range keys {
		find.Everyones, find.OwnerIDs = append(find.Everyones, key.of.IsEveryone()), append(find.OwnerIDs, key.of.ID())
		find.JobTypes, find.ErrorCodes = append(find.JobTypes, key.jobType), append(find.ErrorCodes, key.errorCode)
	}
	rows, err := q.FailuresFind(ctx, find)
	for i := range rows {
		fs.addRow(&rows[i])
	}
	return err
}

func (fs failures) addRow(row *gen.Failure) {
	fs.of(failureKey{apidb.OwnerWith(row.OwnerID, row.Everyone), row.JobType, row.ErrorCode}).addRow(row)
}

// put adds the stored rows to the sums, and stores these.
func (fs failures) put(ctx context.Context, q *gen.Queries, now time.Time) error {
	keys := slices.Collect(maps.Keys(fs))
	if err := fs.addStored(ctx, q, keys); err != nil || len(keys) == 0 {
		return err
	}
	var p gen.FailuresPutParams
	for _, key := range keys {
		sum := fs[key]
		if sum.lastAt.IsZero() {
			continue // a job whose failure was never counted is FAILED no longer
		}
		maps.DeleteFunc(sum.hours, func(hour, _ int64) bool { return hour <= hourOf(now)-failureHours })
		hours, err := json.Marshal(sum.hours)
		if err != nil {
			return err
		}
		p.Everyones, p.OwnerIDs = append(p.Everyones, key.of.IsEveryone()), append(p.OwnerIDs, key.of.ID())
		p.JobTypes, p.ErrorCodes = append(p.JobTypes, key.jobType), append(p.ErrorCodes, key.errorCode)
		p.Kepts, p.FirstAts = append(p.Kepts, max(sum.kept, 0)), append(p.FirstAts, sum.firstAt)
		p.LastAts, p.LastIDs = append(p.LastAts, sum.lastAt), append(p.LastIDs, sum.lastID)
		p.Hours = append(p.Hours, hours)
	}
	return q.FailuresPut(ctx, p)
}

// FailureGroups returns the groups of an owner's FAILED jobs. They are at most a second old.
func (s *Store) FailureGroups(ctx context.Context, owner apidb.Owner) (FailureGroups, error) {
	return s.failures.Of(owner).Get(ctx, statsAge, func(ctx context.Context) (FailureGroups, error) {
		return s.readFailures(ctx, owner)
	})
}

func (s *Store) readFailures(ctx context.Context, owner apidb.Owner) (groups FailureGroups, err error) {
	sums := failures{}
	err = s.db.Snapshot(ctx, func(q *gen.Queries) error {
		if groups.At, err = q.Now(ctx); err != nil {
			return err
		}
		of := gen.FailuresOfParams{Everyone: owner.IsEveryone(), OwnerID: owner.ID(), MaxFailures: mostGroups + 1}
		rows, err := q.FailuresOf(ctx, of)
		if err != nil {
			return err
		}
		groups.Complete = len(rows) <= mostGroups
		for i := range rows {
			sums.addRow(&rows[i])
		}
		entries, err := q.FailureEntriesOf(ctx, gen.FailureEntriesOfParams{Everyone: of.Everyone, OwnerID: of.OwnerID})
		if err != nil {
			return err
		}
		var others []failureKey // those whose jobs were no longer FAILED
		for i := range entries {
			key := failureKey{owner, entries[i].JobType, entries[i].ErrorCode}
			if sums[key] == nil {
				others = append(others, key)
			}
			sums.of(key).addEntry(&entries[i])
		}
		return sums.addStored(ctx, q, others)
	})
	for key, sum := range sums {
		if sum.kept > 0 && !sum.lastAt.IsZero() {
			groups.Groups = append(groups.Groups, sum.group(key, groups.At))
		}
	}
	slices.SortFunc(groups.Groups, func(a, b FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.JobType, b.JobType), cmp.Compare(a.ErrorCode, b.ErrorCode))
	})
	groups.Groups = groups.Groups[:min(len(groups.Groups), mostGroups)]
	return groups, apidb.Classify("read why jobs failed", err)
}

func (f *failure) group(key failureKey, at time.Time) FailureGroup {
	g := FailureGroup{
		JobType: key.jobType, ErrorCode: key.errorCode, Jobs: f.kept,
		FirstAt: f.firstAt.UTC(), LastAt: f.lastAt.UTC(), LastID: f.lastID,
	}
	since := hourOf(HoursSince(at))
	for hour, n := range f.hours {
		switch i := hour - since; {
		case i >= 0 && i < int64(len(g.Hours)):
			g.Hours[i] += n
		case i < 0 && i >= -int64(len(g.Hours)):
			g.DayBefore += n
		}
	}
	return g
}
