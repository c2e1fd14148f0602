package apidb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Stats is how the house does, or one owner's jobs. What has ended is counted as it does; what has not, now and then.
type Stats struct {
	At     time.Time
	AsOf   *time.Time // when Counts of what has not ended were true; nil: nobody has counted yet
	Total  Counts
	Types  map[string]Counts // by job type
	Queues map[string]Counts

	Oldest   *uuid.UUID // that waited for a worker at AsOf, PENDING or RETRYING
	OldestAt time.Time  // when it was accepted

	Minutes []Flow // the last 60, the one under way last
	Hours   []Flow // the last 24, likewise
	Days    []Flow // the last 30, likewise

	Minute1, Minutes5, Hour1 Rates
	Latency5, Latency60      Latency // of what ended in the last 5 and 60 minutes, and the minute under way
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

// statsRead is what statistics are made of.
type statsRead struct {
	at      time.Time // by the database's clock
	tallies []gen.TalliesOfRow
	asOf    *time.Time
	live    []liveCount
}

// Stats gives an owner's statistics that are at most a second old, of a queue, of a job type, or with neither of all.
func (s *Store) Stats(ctx context.Context, owner Owner, queue, jobType string) (Stats, error) {
	c, err := s.stats.of(owner).get(ctx, statsAge, func(ctx context.Context) (statsRead, error) {
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
	b.AsOf = c.asOf
	for i := range c.live {
		if count := &c.live[i]; fits(count.Queue, count.JobType) {
			b.addLive(count)
		}
	}
	return b.done(), nil
}

func (s *Store) readStats(ctx context.Context, owner Owner) (c statsRead, err error) {
	if c.at, err = s.q.Now(ctx); err != nil {
		return c, classify("ask the time", err)
	}
	of := gen.TalliesOfParams{Everyone: owner.everyone, OwnerID: owner.name}
	if c.tallies, err = s.q.TalliesOf(ctx, of); err != nil {
		return c, classify("read tallies", err)
	}
	asOf, counts, err := s.jobCounts(ctx, owner)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, nil
	}
	if err != nil {
		return c, classify("read counts of jobs", err)
	}
	if err := json.Unmarshal(counts, &c.live); err != nil {
		return c, fmt.Errorf("read counts of jobs: %w", err)
	}
	c.asOf = &asOf
	return c, nil
}

func (s *Store) jobCounts(ctx context.Context, owner Owner) (asOf time.Time, counts []byte, err error) {
	if owner.everyone {
		row, err := s.q.JobCounts(ctx)
		return row.AsOf, row.Counts, err
	}
	row, err := s.q.JobCountsOf(ctx, owner.name)
	return row.AsOf, []byte(row.Counts), err
}
