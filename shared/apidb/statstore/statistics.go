package statstore

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Stats are the statistics of the installation, or of one owner's jobs.
type Stats struct {
	At     time.Time
	AsOf   *time.Time // the instant of the Counts: At, or with many jobs that of the last census; nil: there was none
	Total  Counts
	Types  map[string]Counts // by job type
	Queues map[string]Counts

	Oldest   *uuid.UUID // the oldest job that waited for a worker at AsOf, PENDING or RETRYING
	OldestAt time.Time  // when it was accepted
	Pending  map[TypeOfQueue]int64

	Minutes []Flow // the last 60, the current one last
	Hours   []Flow // the last 24, likewise
	Days    []Flow // the last 30, likewise

	Minute1, Minutes5, Hour1 Rates

	Latency5  Latency // of the jobs that ended in the last 5 minutes and the current one
	Latencies BySpan[Latency]
	Failures  BySpan[Failures]
}

// TypeOfQueue is a job type of the jobs of a queue.
type TypeOfQueue struct{ Queue, JobType string }

// BySpan holds a value for each of Minutes, Hours and Days, about the jobs that ended in these.
type BySpan[T any] struct{ Hour, Day, Month T }

// Failures are the job types and error codes with the most failures, the worst first.
type Failures struct {
	Types []FailedType
	Codes []FailedCode
}

// FailedType counts how many jobs of a type failed, and how many ended.
type FailedType struct {
	JobType       string
	Failed, Ended int64
}

// FailedCode counts how many jobs failed with an error code; "" is no code, and codes too rare to be listed.
type FailedCode struct {
	Code   string
	Failed int64
}

// Counts are jobs by status.
type Counts map[jobstate.Status]int64

// Flow counts the events of a span of time.
type Flow struct {
	At                                     time.Time // when the span began
	Accepted, Completed, Failed, Cancelled int64
}

// Rates are jobs a second.
type Rates struct{ Accepted, Completed, Failed, Cancelled float64 }

// Latency holds how long jobs took. Jobs with a later runAt count in Ran only, and retried jobs do not count in
// Waited.
type Latency struct{ Waited, Ran, Took Percentiles }

// Percentiles are of Count durations; 0 without durations.
type Percentiles struct {
	Count         int64
	P50, P95, P99 time.Duration
	Bars          []Bar
}

// statsAge is how old statistics may be: many dashboards read them at the same time.
const statsAge = time.Second

const (
	// mostAtOnce is how many jobs are counted whenever statistics or the health are read, which takes a few
	// milliseconds. Above it, they use the last census.
	mostAtOnce = 5000
	// longCensus is the duration of a census above which there are surely more jobs than mostAtOnce, so that a reader
	// does not try to count them itself.
	longCensus = 200 * time.Millisecond
)

// olderAge is how old the histograms and error codes before the last hour may be: they hardly change, and are many.
const olderAge = time.Minute

// statsRead is the data from which statistics are made.
type statsRead struct {
	at      time.Time // by the database's clock
	tallies []gen.TalliesOfRow
	older   olderTallies // the histograms and error codes that tallies lacks
	asOf    *time.Time
	counts  []*jobCount
}

// Get returns an owner's statistics that are at most a second old: of a queue, of a job type, or without either of
// all.
func (s *Store) Get(ctx context.Context, owner apidb.Owner, queue, jobType string) (Stats, error) {
	c, err := s.stats.Of(owner).Get(ctx, statsAge, func(ctx context.Context) (statsRead, error) {
		return s.readStats(ctx, owner)
	})
	if err != nil {
		return Stats{}, err
	}
	b := newStatsBuilder(c.at)
	fits := func(q, typ string) bool { return (queue == "" || q == queue) && (jobType == "" || typ == jobType) }
	for i := range c.tallies {
		if row := &c.tallies[i]; fits(row.Queue, row.JobType) {
			b.addTally(row)
		}
	}
	for of, older := range c.older.tallies {
		if fits(of.queue, of.jobType) {
			b.windows[day].times.addAll(&older.day)
			b.windows[month].times.addAll(&older.month)
		}
	}
	b.AsOf = c.asOf
	for _, count := range c.counts {
		if fits(count.Queue, count.JobType) {
			b.addCount(count)
		}
	}
	return b.done(), nil
}

// olderTallies are the sums of the tallies before an instant, an hour before the current hour. Later tallies are by
// the minute, and those are kept for two hours, longer than these sums are used.
type olderTallies struct {
	before  time.Time
	tallies map[queueAndType]*olderTally
}

type queueAndType struct{ queue, jobType string }

type olderTally struct{ day, month tally }

func (s *Store) readOlder(ctx context.Context, owner apidb.Owner) (older olderTallies, err error) {
	now, err := s.q.Now(ctx)
	if err != nil {
		return older, apidb.Classify("read the clock", err)
	}
	older.before = now.UTC().Truncate(time.Hour).Add(-time.Hour)
	spans := newStatsBuilder(now)
	rows, err := s.q.TalliesBefore(ctx, gen.TalliesBeforeParams{
		Everyone: owner.IsEveryone(), OwnerID: owner.ID(), Before: older.before, Since: spans.windows[month].since,
	})
	older.tallies = map[queueAndType]*olderTally{}
	for i := range rows {
		row := &rows[i]
		key := queueAndType{row.Queue, row.JobType}
		if older.tallies[key] == nil {
			older.tallies[key] = &olderTally{}
		}
		older.tallies[key].add(row, spans.windows[day].since)
	}
	return older, apidb.Classify("read older statistics", err)
}

func (t *olderTally) add(row *gen.TalliesBeforeRow, lastDay time.Time) {
	var of tally
	of.add(0, 0, row.Waited, row.Ran, row.Took, row.ErrorCodes)
	t.month.addAll(&of)
	if !row.At.Before(lastDay) {
		t.day.addAll(&of)
	}
}

func (s *Store) readStats(ctx context.Context, owner apidb.Owner) (c statsRead, err error) {
	older, err := s.older.Of(owner).Get(ctx, olderAge, func(ctx context.Context) (olderTallies, error) {
		return s.readOlder(ctx, owner)
	})
	if err != nil {
		return c, err
	}
	c.older = older
	err = s.db.Snapshot(ctx, func(q *gen.Queries) error {
		if c.at, err = q.Now(ctx); err != nil {
			return err
		}
		of := gen.TalliesOfParams{Everyone: owner.IsEveryone(), OwnerID: owner.ID(), Since: older.before}
		if c.tallies, err = q.TalliesOf(ctx, of); err != nil {
			return err
		}
		return c.readCounts(ctx, q, owner)
	})
	return c, apidb.Classify("read statistics", err)
}

func (c *statsRead) readCounts(ctx context.Context, q *gen.Queries, owner apidb.Owner) error {
	last, err := q.JobCountsOf(ctx, gen.JobCountsOfParams{Everyone: owner.IsEveryone(), OwnerID: owner.ID()})
	counted := err == nil
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if last.Took < longCensus {
		rows, err := q.JobsCountPage(ctx, gen.JobsCountPageParams{MaxJobs: mostAtOnce + 1})
		if err != nil {
			return err
		}
		if jobsOf(rows) <= mostAtOnce {
			now := Census{counts: map[countKey]*jobCount{}}
			now.add(rows)
			if of := now.byOwner()[owner]; of != nil {
				c.counts = of.live
			}
			c.asOf = &c.at
			c.addEnded()
			return nil
		}
	}
	if !counted {
		c.addEnded()
		return nil
	}
	if c.counts, err = storedCounts(last.Ended); err != nil {
		return err
	}
	live, err := storedCounts(last.Counts)
	if err != nil {
		return err
	}
	c.counts, c.asOf = append(c.counts, live...), &last.AsOf
	return nil
}

// addEnded counts the ended jobs from the tallies.
func (c *statsRead) addEnded() {
	for i := range c.tallies {
		if row := &c.tallies[i]; row.Kept != 0 {
			c.counts = append(c.counts, &jobCount{
				Status: jobstate.Status(row.What), Queue: row.Queue, JobType: row.JobType, N: row.Kept,
			})
		}
	}
}
