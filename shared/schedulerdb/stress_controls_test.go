package schedulerdb

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

// Jobs end in their order and after their dependencies while controls pause, limit and release them, and while the
// functions crash.
func TestConcurrentCopiesEndEveryJobWhileControlsChange(t *testing.T) {
	h := openFixture(t, Config{Lease: 300 * time.Millisecond, MaxLost: 3}, patient+"pool_max_conns=12")
	w := &world{fixture: h, jobs: map[uuid.UUID]*stressJob{}, commandsLeft: 30, controlled: []subject{
		{"queue", "default"}, {"queue", "mail"}, {"type", "A"}, {"type", "B"}, {"owner", "x"},
	}}
	last := map[string]*uuid.UUID{}
	for i := range 100 {
		job := newJob()
		job.JobType, job.OwnerID = []string{"A", "B", "C"}[rand.IntN(3)], []string{"", "x"}[rand.IntN(2)]
		job.Queue = []string{"default", "mail"}[rand.IntN(2)]
		job.RetryPolicy = &retrypolicy.Policy{Type: retrypolicy.Fixed, DelayMs: rand.Int64N(30)}
		if rand.IntN(4) == 0 {
			key := job.OwnerID + string(rune('a'+rand.IntN(4)))
			job.OrderingKey, job.OrderNumber, job.OrderAfter = key, int64(i+1), last[key]
			last[key] = &job.JobID
		}
		if i > 0 && rand.IntN(4) == 0 {
			job.After, job.RunAnyway = []uuid.UUID{w.ids[rand.IntN(i)]}, rand.IntN(2) == 0
		}
		if job.OrderingKey == "" && len(job.After) == 0 {
			w.acceptAlike(job, 1+rand.IntN(8))
		} else {
			w.accept(job)
		}
	}
	w.run()
	w.check()
	for _, s := range w.controlled {
		w.controls++
		h.control(nothing(s.kind, s.name, w.controls))
	}
	h.tick()
	h.wantNothingLeft()
	h.wantEmpty()
}

// controlSome sets one control of any kind, and removes two others.
func (w *world) controlSome(ctx context.Context) {
	if len(w.controlled) == 0 {
		return
	}
	w.controls++
	i, n := rand.IntN(len(w.controlled)), len(w.controlled)
	s, free, other := w.controlled[i], w.controlled[(i+1)%n], w.controlled[(i+2)%n]
	c := []jobevent.Control{
		pause(s.kind, s.name, w.controls), atMost(s.kind, s.name, w.controls, rand.IntN(4)),
		aSecond(s.kind, s.name, w.controls, 1+rand.Float64()*500),
	}[rand.IntN(3)]
	effects, err := w.Control(ctx, []jobevent.Control{
		c, nothing(free.kind, free.name, w.controls), nothing(other.kind, other.name, w.controls),
	})
	w.publish(ctx, effects, err)
}
