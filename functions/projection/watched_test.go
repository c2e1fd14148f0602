package projection_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// A projection tells of changes with the batch that makes them, from when a client watches, and tells nobody before.
func TestABatchTellsOfItsChangesWhileSomebodyWatches(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	heard, begun := make(chan apidb.Change, 100), make(chan struct{})
	all.Go(func() {
		_ = h.store.ListenChanges(ctx, func() { close(begun) }, func(c apidb.Change) { heard <- c })
	})
	defer func() { cancel(); all.Wait() }()
	<-begun
	next := func() apidb.Change {
		select {
		case c := <-heard:
			return c
		case <-time.After(20 * time.Second):
			t.Fatal("nothing is told")
			return apidb.Change{}
		}
	}
	mark := func() {
		if err := h.store.NotifyCommitted(ctx, apidb.ChangeHere, []uuid.UUID{uuid.New()}); err != nil {
			t.Fatal(err)
		}
	}
	id := uuid.MustParse(h.accept().Subject())
	h.hear(status(t, id.String(), 1, jobstate.Running))
	if mark(); next().Kind != apidb.ChangeHere {
		t.Error("something is told while nobody watches")
	}
	all.Go(func() { _ = h.Run(ctx, nil) })
	for told := false; !told; { // until it listens
		if err := h.store.AnnounceWatching(ctx); err != nil {
			t.Fatal(err)
		}
		mark()
		told = next().Kind == apidb.ChangeBegins
	}
	bad := uuid.MustParse(h.accept().Subject())
	refused := []jobevent.Item{status(t, id.String(), 2, jobstate.Completed), status(t, bad.String(), 1, "NONSENSE")}
	if _, err := h.Handle(ctx, refused); err == nil {
		t.Fatal("a status that there is not was applied")
	}
	h.hear(status(t, id.String(), 3, jobstate.Completed))
	c := next()
	for c.Kind == apidb.ChangeHere || c.Kind == apidb.ChangeBegins { // of asking more than once
		c = next()
	}
	if c.Kind != apidb.ChangeEnded || len(c.JobIDs) != 1 || c.JobIDs[0] != id {
		t.Errorf("told %c %v, and not the end alone", c.Kind, c.JobIDs)
	}
}
