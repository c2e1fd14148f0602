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

// Projection notifies watching processes of changes in the transaction that makes them, and sends no notification while
// no client watches.
func TestABatchNotifiesOfItsChangesWhileAClientWatches(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	changes, begun := make(chan apidb.Change, 100), make(chan struct{})
	all.Go(func() {
		_ = h.store.ListenChanges(ctx, func() { close(begun) }, func(c apidb.Change) { changes <- c })
	})
	defer func() { cancel(); all.Wait() }()
	<-begun
	next := func() apidb.Change {
		select {
		case c := <-changes:
			return c
		case <-time.After(20 * time.Second):
			t.Fatal("no notification arrives")
			return apidb.Change{}
		}
	}
	mark := func() {
		if err := h.store.NotifyCommitted(ctx, apidb.ChangeHere, []uuid.UUID{uuid.New()}); err != nil {
			t.Fatal(err)
		}
	}
	id := uuid.MustParse(h.accept().Subject())
	h.handle(status(t, id.String(), 1, jobstate.Running))
	if mark(); next().Kind != apidb.ChangeHere {
		t.Error("a notification arrives while no client watches")
	}
	all.Go(func() { _ = h.Run(ctx, nil) })
	for listens := false; !listens; {
		if err := h.store.AnnounceWatching(ctx); err != nil {
			t.Fatal(err)
		}
		mark()
		listens = next().Kind == apidb.ChangeBegins
	}
	bad := uuid.MustParse(h.accept().Subject())
	refused := []jobevent.Item{status(t, id.String(), 2, jobstate.Completed), status(t, bad.String(), 1, "NONSENSE")}
	if _, err := h.Handle(ctx, refused); err == nil {
		t.Fatal("a status that there is not was applied")
	}
	h.handle(status(t, id.String(), 3, jobstate.Completed))
	c := next()
	for c.Kind == apidb.ChangeHere || c.Kind == apidb.ChangeBegins { // these come from repeated announcements
		c = next()
	}
	if c.Kind != apidb.ChangeEnded || len(c.JobIDs) != 1 || c.JobIDs[0] != id {
		t.Errorf("got %c %v, want only the end", c.Kind, c.JobIDs)
	}
}
