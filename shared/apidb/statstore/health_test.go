package statstore_test

import (
	"testing"

	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// A health check counts few jobs itself, and takes the numbers of many from the last census.
func TestAHealthCheckCountsFewJobs(t *testing.T) {
	t.Parallel()
	const mostAtOnce = 5000
	for name, c := range map[string]struct {
		pending, failed int
		census          bool
		later           int // jobs that fail after the census
		want            statstore.Health
	}{
		"no job":            {want: statstore.Health{}},
		"few":               {pending: 3, failed: 4, want: statstore.Health{PendingJobs: 3, DeadJobs: 4}},
		"as many as it may": {pending: mostAtOnce, census: true, later: 1, want: statstore.Health{PendingJobs: mostAtOnce, DeadJobs: 1}},
		"many that failed": {
			pending: 3, failed: mostAtOnce + 2, census: true, later: 1, want: statstore.Health{PendingJobs: 3, DeadJobs: mostAtOnce + 2},
		},
		"many that wait": {
			pending: mostAtOnce + 3, failed: 4, census: true, later: 1, want: statstore.Health{PendingJobs: mostAtOnce + 3, DeadJobs: 4},
		},
		"many, not counted yet": {pending: mostAtOnce + 3, failed: 4, want: statstore.Health{PendingJobs: mostAtOnce + 1, DeadJobs: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			h.fill(t, c.pending, jobstate.Pending)
			h.fill(t, c.failed, jobstate.Failed)
			h.Exec(t, `insert into tallies (everyone, owner_id, grain, at, queue, job_type, what, n, kept)
				values (true, '', 'ever', 'epoch', 'default', 'A', 'FAILED', $1, $1)`, c.failed)
			if c.census {
				h.census(t)
			}
			h.fill(t, c.later, jobstate.Failed)
			if got, err := h.Stats.Health(t.Context()); err != nil || got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}
