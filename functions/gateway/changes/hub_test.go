package changes

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/waiters"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestEndIsNotifiedByItsCommit(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t, migrations.API)
	mine, theirs := openStore(t, url), openStore(t, url)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	h, ready := New(mine.Store, mine.Jobs, mine.Controls, mine.Logs), make(chan struct{}, 1)
	e := waiters.New(mine.Jobs.Ended, h.IsNotified)
	h.Ends = e
	all.Go(func() { _ = theirs.ListenWatchers(ctx, func() { signal(ready) }) })
	all.Go(func() { h.Run(ctx) })
	all.Go(func() { e.Run(ctx) })
	defer func() { stop(); all.Wait() }()
	<-ready
	id := uuid.Must(uuid.NewV7())
	_, err := mine.Jobs.InsertJobs(ctx, []jobstore.NewJob{{JobID: id, TraceID: uuid.New(), Whose: apidb.Everyone, Request: jobspec.Request{
		JobType: "OWN", Payload: []byte(`1`), Queue: "default", Spec: jobevent.Spec{TimeoutMs: (time.Minute).Milliseconds()},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Enter()()
	for !h.IsNotified() { // until the projection has confirmed
		if t.Context().Err() != nil {
			t.Fatal("no projection notifies")
		}
		runtime.Gosched()
	}
	ended := make(chan struct{})
	go func() { e.Wait(ctx, id); close(ended) }()
	status := jobevent.Status{JobID: id, Version: 1, Status: "COMPLETED", UpdatedAt: time.Now()}
	if _, err := theirs.Statuses.ApplyStatuses(ctx, []statusstore.PublishedStatus{{Status: status, JSON: []byte(`{"history": []}`)}}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the end was not notified")
	}
}

func openStore(t *testing.T, url string) *apidbtest.Stores {
	t.Helper()
	store := apidbtest.Open(t, url)
	return store
}
