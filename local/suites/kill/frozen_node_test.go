package kill

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/retry"
)

// One copy of every function is frozen, as a lost node leaves them, in a transaction or not: the other copies
// continue, and every job ends in time. The same holds with ingest frozen and a worker killed beside it. No frozen
// process wakes before the time is over in which jobs must run again.
func TestAFrozenNodeHoldsNothingUp(t *testing.T) {
	duration(t)
	t.Parallel()
	rnd := newRand(t)
	h := build(t, plan{workers: 2, copies: 2})
	follow, unfollow := context.WithCancel(t.Context())
	defer unfollow()
	l, c := newLoad(follow, h, rnd), &chaos{fixture: h, rnd: rnd}
	l.shapes = briefShapes
	submitting, stopSubmitting := context.WithCancel(t.Context())
	defer stopSubmitting()
	l.run(submitting)

	var node []target
	for _, p := range h.processes {
		if strings.HasSuffix(p.name, "-2") {
			node = append(node, p.frozen())
		}
	}
	if want := len(functions) - 1; len(node) != want { // no relay: there is no outbox
		t.Fatalf("the node has %d processes, not one of each of %d functions", len(node), want)
	}
	for _, fault := range []target{
		together("a node, frozen", node),
		together("ingest frozen, a worker killed", slices.Concat(
			[]target{h.frozen("ingest-2")}, h.targetsNamed("runjob-2"))),
	} {
		retry.Pause(t.Context(), 2*time.Second) // so that the load has reached everything
		l.recoverFrom(t, c, fault, recoverWithin+time.Second, recoverWithin)
	}
	stopSubmitting()
	l.submitting.Wait()
	if err := h.drain(t.Context(), time.Time{}, drainWithin); err != nil {
		t.Fatal(err)
	}
	e := h.evidence(t.Context(), l, c)
	e.check()
	e.checkRecovery(t)
	h.report(e)
	h.stopAll()
	e.summarize(t)
}

func (h *fixture) frozen(name string) target {
	i := slices.IndexFunc(h.processes, func(p *process) bool { return p.name == name })
	return h.processes[i].frozen()
}

// frozen returns a target that is frozen in place of a kill, and woken in place of a start.
func (p *process) frozen() target {
	wake := func() error { return errors.New("it is not frozen") }
	return target{
		name:    p.name + " frozen",
		kill:    func() (err error) { wake, err = p.freeze(); return err },
		restart: func(context.Context) error { return wake() },
	}
}
