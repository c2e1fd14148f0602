package projection

import (
	"context"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// sumEvery is the time between two sums of the entries of the statistics.
const sumEvery = 10 * time.Second

// statistics has the instants of the next steps, in memory only.
type statistics struct {
	census         statstore.Census
	sumAt, countAt time.Time // zero: at once
}

// count takes the steps of the statistics that are due, and returns when the next one is. A failure does not delay the
// function's other work.
func (f *Function) count(ctx context.Context, now time.Time) (next time.Duration) {
	s := &f.statistics
	if time.Until(s.sumAt) <= 0 {
		more, err := f.store.stats.SumTallies(ctx, now)
		s.sumAt = time.Now().Add(f.rest(ctx, more, sumEvery, err))
	}
	if time.Until(s.countAt) <= 0 {
		rest, err := f.store.stats.CountJobs(ctx, &s.census, now)
		s.countAt = time.Now().Add(f.rest(ctx, rest == 0, rest, err))
	}
	return max(min(time.Until(s.sumAt), time.Until(s.countAt)), 0)
}

func (f *Function) rest(ctx context.Context, more bool, otherwise time.Duration, err error) time.Duration {
	f.counting.Note(ctx, err)
	switch {
	case err != nil:
		return every
	case more:
		return 0
	}
	return otherwise
}

// scrapePatience is how long a scrape of the metrics waits for the database.
const scrapePatience = 2 * time.Second

// countMetrics registers the counted jobs as a metric, which only this function has.
func (f *Function) countMetrics(m telemetry.Meter) (stop func()) {
	return m.WatchJobs(func() (telemetry.JobCounts, bool) {
		ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
		defer cancel()
		counts, ok, err := f.store.stats.Counts(ctx)
		return counts, ok && err == nil // other code reports that the database is unavailable
	})
}
