package runjob

import (
	"testing"
	"time"
)

func TestAWorkerDeletesOldAttempts(t *testing.T) {
	h := newFixture(t)
	h.exec(`INSERT INTO blocks (block_id, attempt, taken, completed, places, started_at, finished_at, outputs)
		SELECT block_of(uuidv7(age)), 1, 1, 1, '{0}', ARRAY[now() + age], ARRAY[now() + age], '{null}'
		FROM unnest('{-7 days, -9 days, -10 days}'::interval[]) AS age`)
	h.start(func(c *Config, times *timing) {
		c.RetainAttempts, times.cleanupEvery = 8*24*time.Hour, 10*time.Millisecond
		times.heartbeatAtMost, times.heartbeatAtLeast = 10*time.Millisecond, 20*time.Millisecond
	})
	h.until("what is old has gone", func() bool { return h.count("SELECT count(*) FROM attempts") == 1 })
	run := h.run("SIMULATION", noop)
	h.order(run)
	h.outcome(run)
}
