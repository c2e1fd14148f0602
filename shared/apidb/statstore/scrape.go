package statstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/idtime"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// countedAge is how old the answer to a scrape may be, since several Prometheus servers may scrape.
const countedAge = 5 * time.Second

// Counts returns the last count of the jobs that have not ended: one row, however many jobs there are. ok is false if
// no process has counted yet.
func (s *Store) Counts(ctx context.Context) (counts telemetry.JobCounts, ok bool, err error) {
	counts, err = s.counted.Get(ctx, countedAge, s.readCounted)
	return counts, !counts.AsOf.IsZero(), err
}

func (s *Store) readCounted(ctx context.Context) (counts telemetry.JobCounts, err error) {
	row, err := s.q.JobCounts(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return counts, nil
	}
	if err != nil {
		return counts, apidb.Classify("read counts of jobs", err)
	}
	live, err := storedCounts(row.Counts)
	if err != nil {
		return counts, err
	}
	counts = telemetry.JobCounts{AsOf: row.AsOf, Of: make([]telemetry.JobCount, len(live))}
	for i, c := range live {
		counts.Of[i] = telemetry.JobCount{State: string(c.Status), Queue: c.Queue, JobType: c.JobType, N: c.N}
		counts.Of[i].Oldest = row.AsOf
		if at, known := idtime.Of(c.Oldest); known {
			counts.Of[i].Oldest = at
		}
	}
	return counts, nil
}
