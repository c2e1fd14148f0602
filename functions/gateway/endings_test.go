package gateway

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// chaos F2: the poller looks every 50 ms, also while the database refuses it.
func TestWhoWaitsForAnEndFloodsNoLogWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		ctx, stop := context.WithCancel(telemetry.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&out, nil))))
		back := time.Now().Add(150 * time.Second)
		e := newEndings(func(_ context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
			if time.Now().Before(back) {
				return nil, errors.New("refused")
			}
			return ids, nil
		}, never)
		go e.run(ctx)
		e.wait(ctx, uuid.New())
		stop()
		<-e.closing
		if time.Now().Before(back) {
			t.Error("the wait ended while the database was away")
		}
		if lines := strings.Count(out.String(), "\n"); lines != 4 {
			t.Errorf("logged %d lines in 150 s, want its begin, two reminders and its end: %s", lines, out.String())
		}
	})
}

// told are endings of which the poll finds nothing in time.
func told(ask func([]uuid.UUID) []uuid.UUID) *endings {
	e := newEndings(func(_ context.Context, ids []uuid.UUID) ([]uuid.UUID, error) { return ask(ids), nil }, never)
	e.every = time.Hour
	return e
}

func TestAnEndThatIsToldIsNotWaitedForByThePoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		mine, other := uuid.New(), uuid.New()
		var ended []uuid.UUID
		var asked [][]uuid.UUID
		e := told(func(ids []uuid.UUID) []uuid.UUID {
			asked = append(asked, ids)
			return ended
		})
		go e.run(ctx)
		began := time.Now()
		done := make(chan uuid.UUID, 2)
		for _, id := range []uuid.UUID{mine, other} {
			go func() { e.wait(ctx, id); done <- id }()
		}
		synctest.Wait()
		e.tell([]uuid.UUID{mine, uuid.New()}) // of a version that is over
		synctest.Wait()
		if len(done) > 0 {
			t.Error("a job that has not ended was taken for one that has")
		}
		ended = []uuid.UUID{mine}
		e.tell(ended)
		if id := <-done; id != mine || len(asked[len(asked)-1]) != 1 {
			t.Errorf("%s has ended, asked were %v", id, asked)
		}
		ended = []uuid.UUID{other}
		e.tellAll()
		if <-done; time.Since(began) > 0 {
			t.Errorf("it took %s", time.Since(began))
		}
		ended = []uuid.UUID{mine}
		e.tell(ended) // before anybody waits for it
		e.wait(ctx, mine)
		if time.Since(began) > 0 {
			t.Errorf("an end that came before was found after %s", time.Since(began))
		}
		stop()
		<-e.closing
	})
}

func TestThePollIsSeldomWhileEndsAreTold(t *testing.T) {
	t.Parallel()
	for isTold, want := range map[bool]time.Duration{true: endingsSeldom, false: endingsEvery} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			looks := 0
			e := newEndings(func(_ context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
				if looks++; looks == 3 {
					return ids, nil
				}
				return nil, nil
			}, func() bool { return isTold })
			go e.run(ctx)
			began := time.Now()
			e.wait(ctx, uuid.New())
			if took := time.Since(began); took != 2*want {
				t.Errorf("two polls take %s, want %s", took, 2*want)
			}
			stop()
			<-e.closing
		})
	}
}

func TestAnEndIsToldWithTheCommitThatMakesIt(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t, migrations.API)
	mine, theirs := openStore(t, url), openStore(t, url)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	h, ready := newHub(newStores(mine.Store)), make(chan struct{}, 1)
	e := told(nil)
	e.ask, h.ends = mine.Jobs.Ended, e
	all.Go(func() { _ = theirs.ListenWatchers(ctx, func() { rouse(ready) }) })
	all.Go(func() { h.run(ctx) })
	all.Go(func() { e.run(ctx) })
	defer func() { stop(); all.Wait() }()
	<-ready
	id := uuid.Must(uuid.NewV7())
	_, err := mine.Jobs.InsertJobs(ctx, []jobstore.NewJob{{JobID: id, TraceID: uuid.New(), Whose: apidb.Everyone, Request: jobspec.Request{
		JobType: "OWN", Payload: []byte(`1`), Queue: "default", Timeout: time.Minute,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.enter()()
	for !h.isTelling() { // until the projection has answered
		if t.Context().Err() != nil {
			t.Fatal("nobody tells")
		}
		runtime.Gosched()
	}
	ended := make(chan struct{})
	go func() { e.wait(ctx, id); close(ended) }()
	word := jobevent.Status{JobID: id, Version: 1, Status: "COMPLETED", UpdatedAt: time.Now()}
	if _, err := theirs.Statuses.ApplyStatuses(ctx, []statusstore.StatusWord{{Status: word, JSON: []byte(`{"history": []}`)}}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the end was told to nobody")
	}
}

func openStore(t *testing.T, url string) *apidbtest.Stores {
	t.Helper()
	store := apidbtest.Open(t, url)
	return store
}
