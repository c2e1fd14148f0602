package runjob

import (
	"testing"
	"time"
)

func TestAWorkerDeletesOldAttempts(t *testing.T) {
	h := newFixture(t)
	h.exec(`INSERT INTO execution_attempts
			(job_id, attempt, trace_id, queue, worker_id, timeout_ms, started_at, finished_at, outcome)
		SELECT uuidv7(age), 1, uuidv7(), 'default', 'w1', 1000, now(), now() + age, 'completed'
		FROM unnest('{-7 days, -9 days, -10 days}'::interval[]) AS age`)
	h.start(func(c *Config, times *timing) {
		c.RetainAttempts, times.cleanupEvery = 8*24*time.Hour, 10*time.Millisecond
		times.heartbeatAtMost, times.heartbeatAtLeast = 10*time.Millisecond, 20*time.Millisecond
	})
	h.until("what is old has gone", func() bool { return h.count("SELECT count(*) FROM execution_attempts") == 1 })
	run := h.run("SIMULATION", noop)
	h.order(run)
	h.outcome(run)
}
