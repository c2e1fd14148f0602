package kill

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/kill/witness"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// drained is a drain of a worker, from when the API showed that nothing of it was left until the undo was sent.
type drained struct {
	process         string
	asked, from, to time.Time
	back            bool // it started attempts after the undo
}

// drains drains a worker that is neither killed nor frozen, and undoes that once it is drained, again and again.
func (l *load) drains(ctx context.Context, p *process) {
	process := p.last().name
	id, err := l.fixture.workerID(process)
	if err != nil {
		l.fixture.complain("%v", err)
		return
	}
	for retry.Pause(ctx, 3*time.Second) {
		d := drained{process: process, asked: time.Now()}
		l.steer(http.MethodPut, id)
		if err = l.awaitDrained(id); err != nil {
			l.fixture.complain("%v", err)
		}
		d.from = time.Now()
		retry.Pause(ctx, 3*time.Second)
		d.to = time.Now()
		l.steer(http.MethodDelete, id)
		d.back = err == nil && within(ctx, drainWithin, func(context.Context) error { return l.fixture.startedAfter(process, d.to) }) == nil
		l.mu.Lock()
		l.drained = append(l.drained, d)
		l.mu.Unlock()
		if !d.back && ctx.Err() == nil {
			l.fixture.complain("%s has started nothing since its drain was undone at %s", process, clock(d.to))
		}
	}
}

func (h *fixture) workerID(process string) (string, error) {
	lines, err := witness.Read(h.witnessFile())
	for _, line := range lines {
		if line.What == witness.Worker && line.Process == process {
			return line.How, nil
		}
	}
	return "", errors.Join(err, fmt.Errorf("worker %s has not recorded its id", process))
}

func (h *fixture) startedAfter(process string, after time.Time) error {
	lines, err := witness.Read(h.witnessFile())
	if err == nil && !slices.ContainsFunc(lines, func(line witness.Line) bool {
		return line.What == witness.Start && line.Process == process && line.At.After(after)
	}) {
		err = errors.New("nothing started")
	}
	return err
}

// steer sets or ends the drain of a worker.
func (l *load) steer(method, id string) {
	err := within(l.follow, drainWithin, func(ctx context.Context) error {
		_, err := l.fixture.api.Do(ctx, method, "/api/workers/"+id+"/drain", "", nil, nil)
		return err
	})
	if err != nil {
		l.fixture.complain("%s the drain of %s: %v", method, id, err)
	}
}

// awaitDrained waits until a worker has nothing left.
func (l *load) awaitDrained(id string) error {
	return within(l.follow, drainWithin, func(ctx context.Context) error {
		var page struct {
			Workers []struct {
				WorkerID string
				Drained  bool
				Attempts []struct{}
			}
		}
		if _, err := l.fixture.api.Do(ctx, http.MethodGet, "/api/workers", "", nil, &page); err != nil {
			return err
		}
		for _, w := range page.Workers {
			if w.WorkerID == id && w.Drained {
				return nil
			} else if w.WorkerID == id {
				return fmt.Errorf("worker %s is not drained, and has %d attempts", id, len(w.Attempts))
			}
		}
		return fmt.Errorf("worker %s is not shown", id)
	})
}

// checkDrained: a drained worker runs nothing until its drain is undone. How its attempts ended is checked for all
// workers alike.
func (e *evidence) checkDrained(drains []drained) {
	for id, runs := range e.ran {
		for _, r := range runs {
			for _, d := range drains {
				if r.process == d.process && r.start.Before(d.to) && (r.end.IsZero() || r.end.After(d.from)) {
					e.find(id, "ran in %s from %s to %s, which was drained from %s to %s",
						r.process, clock(r.start), clock(r.end), clock(d.from), clock(d.to))
				}
			}
		}
	}
}

// countDrains counts the drains after which the worker came back, and the runs that a drain let finish.
func (e *evidence) countDrains(n map[string]int) {
	for _, d := range e.load.drained {
		if d.back {
			n["took attempts after its drain"]++
		}
		for _, runs := range e.ran {
			for _, r := range runs {
				if r.process == d.process && r.start.Before(d.asked) && r.end.After(d.asked) {
					n["ran on in a drain"]++
				}
			}
		}
	}
}

func TestTheCheckOfDrainedWorkersFindsEachViolation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		process    string
		start, end time.Time
		find       string
	}{
		"it ended before":        {"runjob-4#1", at(1), at(2), ""},
		"it began after":         {"runjob-4#1", at(6), at(7), ""},
		"in another worker":      {"runjob-1#1", at(3), at(4), ""},
		"it began while drained": {"runjob-4#1", at(4), at(7), "which was drained"},
		"it was still running":   {"runjob-4#1", at(1), at(4), "which was drained"},
		"it never ended":         {"runjob-4#1", at(1), time.Time{}, "which was drained"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &evidence{ran: map[string][]run{"job": {{job: "job", process: c.process, start: c.start, end: c.end}}}}
			e.checkDrained([]drained{{process: "runjob-4#1", from: at(3), to: at(5)}})
			e.wants(t, c.find)
		})
	}
}
