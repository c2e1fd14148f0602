package statstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Stats is how the installation does, or one owner's jobs.
type Stats struct {
	At     time.Time
	AsOf   *time.Time // when the Counts were true: At, or where more is to be counted the last census; nil: there was none
	Total  Counts
	Types  map[string]Counts // by job type
	Queues map[string]Counts

	Oldest   *uuid.UUID // that waited for a worker at AsOf, PENDING or RETRYING
	OldestAt time.Time  // when it was accepted

	Minutes []Flow // the last 60, the one under way last
	Hours   []Flow // the last 24, likewise
	Days    []Flow // the last 30, likewise

	Minute1, Minutes5, Hour1 Rates

	Latency5  Latency // of what ended in the last 5 minutes and the one under way
	Latencies BySpan[Latency]
	Failures  BySpan[Failures]
}

// BySpan has one for each of Minutes, Hours and Days, of what ended in these.
type BySpan[T any] struct{ Hour, Day, Month T }

// Failures are the job types and the error codes that failed most, the worst first.
type Failures struct {
	Types []FailedType
	Codes []FailedCode
}

// FailedType is how many jobs of a type failed, and how many ended.
type FailedType struct {
	JobType       string
	Failed, Ended int64
}

// FailedCode is how many jobs failed with an error code; "" is of no code, and of those too rare to be told apart.
type FailedCode struct {
	Code   string
	Failed int64
}

// Counts are jobs by status.
type Counts map[jobstate.Status]int64

// Flow is what happened in a span of time.
type Flow struct {
	At                                     time.Time // when it began
	Accepted, Completed, Failed, Cancelled int64
}

// Rates are jobs a second.
type Rates struct{ Accepted, Completed, Failed, Cancelled float64 }

// Latency is how long things take. Jobs that asked for a later time count in Ran only, and retried ones
// not in Waited.
type Latency struct{ Waited, Ran, Took Percentiles }

// Percentiles of Count durations; 0 of none.
type Percentiles struct {
	Count         int64
	P50, P95, P99 time.Duration
}

// statsAge is how old statistics may be: dashboards come in crowds.
const statsAge = time.Second

const (
	// mostAtOnce is how many jobs that have not ended are counted whenever statistics are read, in some milliseconds.
	// Where there are more, a census has counted them.
	mostAtOnce = 5000
	// longCensus is how long one takes of so many more that reading does not even try.
	longCensus = 200 * time.Millisecond
)

// olderAge is how old the histograms and error codes before the last hour may be: they hardly change, and are many.
const olderAge = time.Minute

// statsRead is what statistics are made of.
type statsRead struct {
	at      time.Time // by the database's clock
	tallies []gen.TalliesOfRow
	older   olderTallies // histograms and error codes that tallies has not
	asOf    *time.Time
	counts  []*jobCount
}

// Get returns an owner's statistics that are at most a second old, of a queue, of a job type, or with neither of all.
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

// olderTallies are summed up of those before an instant, an hour before the hour under way. Tallies after it are of
// minutes, which are kept for two hours, for as long as these sums are used.
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
	if !counted || last.Ended == "" {
		c.addEnded()
	} else if err := json.Unmarshal([]byte(last.Ended), &c.counts); err != nil {
		return fmt.Errorf("read counts of jobs that have ended: %w", err)
	}
	if !counted {
		return nil
	}
	var live []*jobCount
	if err := json.Unmarshal([]byte(last.Counts), &live); err != nil {
		return fmt.Errorf("read counts of jobs: %w", err)
	}
	c.counts, c.asOf = append(c.counts, live...), &last.AsOf
	return nil
}

// addEnded counts those that have ended by what is tallied.
func (c *statsRead) addEnded() {
	for i := range c.tallies {
		if row := &c.tallies[i]; row.Kept != 0 {
			c.counts = append(c.counts, &jobCount{
				Status: jobstate.Status(row.What), Queue: row.Queue, JobType: row.JobType, N: row.Kept,
			})
		}
	}
}
