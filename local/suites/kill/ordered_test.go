package kill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	keys      = 40
	jobsOfKey = 50
)

// line is the orders of one ordering key, in the order of their acceptance.
type line struct {
	key    string
	orders []*order
}

// orderedShapes returns the shapes of the jobs of a key.
func orderedShapes(key string) []*shape {
	ordered := func(more ...any) map[string]any {
		return with(retries(3, 50, 150), append(more, "orderingKey", key)...)
	}
	return []*shape{
		{name: "ordered", weight: 30, payload: works(0, 20), request: ordered(), ends: one(completed)},
		{name: "ordered, fails twice", weight: 5, payload: works(0, 20, "failAttempts", 2), request: ordered(), ends: one(completed)},
		{
			name: "ordered, fails for good", weight: 3, payload: works(0, 20, "failAttempts", 1000, "fatal", true),
			request: ordered(), ends: one(failed), code: "TEST.FAILED",
		},
		{
			name: "ordered, is cancelled", weight: 3, payload: works(0, 300), request: ordered(), cancelIn: 3 * time.Second,
			ends: []string{completed, canceled},
		},
		{name: "ordered, snoozes", weight: 2, payload: works(0, 20, "snoozeAttempts", 1), request: ordered(), ends: one(completed)},
	}
}

// stuckShape returns the first job of a key, which would hold the key for an hour.
func stuckShape(key string) *shape {
	return &shape{
		name: "ordered, stuck", payload: works(3_600_000, 3_600_000),
		request: map[string]any{"orderingKey": key, "timeoutMs": 7_200_000}, ends: one(canceled),
	}
}

// submitLines submits all keys concurrently, and each of them in parts. The first key's first job is stuck.
func (l *load) submitLines(ctx context.Context) []*line {
	lines := make([]*line, keys)
	for i := range lines {
		n := &line{key: fmt.Sprintf("line-%d", i)}
		lines[i] = n
		rnd := l.rnd()
		l.submitting.Go(func() { l.submitLine(ctx, rnd, n, i == 0) })
	}
	return lines
}

func (l *load) submitLine(ctx context.Context, rnd *rand.Rand, n *line, stuck bool) {
	shapes := orderedShapes(n.key)
	for len(n.orders) < jobsOfKey {
		s := anyOf(shapes, rnd)
		if stuck && len(n.orders) == 0 {
			s = stuckShape(n.key)
		}
		if rnd.IntN(3) == 0 {
			o := l.newOrder(rnd, s, "single", true)
			n.orders = append(n.orders, o)
			l.submit(ctx, o)
			continue
		}
		part := []*order{l.newOrder(rnd, s, "batch", true)}
		for range min(rnd.IntN(10), jobsOfKey-len(n.orders)-1) {
			part = append(part, l.newOrder(rnd, anyOf(shapes, rnd), "batch", true))
		}
		n.orders = append(n.orders, part...)
		l.submitAll(ctx, part)
	}
}

// checkLine: no job of a key has begun before all earlier accepted ones had ended, by the scheduler and by their
// handlers.
func (e *evidence) checkLine(n *line) {
	var over time.Time // everything so far
	for i, o := range n.orders {
		job := e.jobs[o.id]
		if job == nil {
			continue // another check reports it
		}
		runs := slices.Clone(e.ran[o.id])
		slices.SortFunc(runs, func(a, b run) int { return a.start.Compare(b.start) })
		if len(runs) > 0 && runs[0].start.Before(over) {
			e.find(o.id, "number %d of %s began at %s, what was before it had ended at %s", i, n.key, clock(runs[0].start), clock(over))
		}
		for at, r := range runs {
			if at > 0 && r.start.Before(runs[at-1].end) {
				e.find(o.id, "number %d of %s began attempt %d before the end of attempt %d", i, n.key, r.attempt, runs[at-1].attempt)
			}
			over = latest(over, r.end)
		}
		over = latest(over, job.endedAt())
	}
}

// endedAt returns when the scheduler ended it.
func (s *shown) endedAt() time.Time {
	i := slices.IndexFunc(s.History, func(m shownMove) bool { return m.To == s.Status && m.From != m.To })
	if i < 0 || !s.terminal() {
		return time.Time{}
	}
	return s.History[i].At
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
