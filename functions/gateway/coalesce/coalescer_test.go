package coalesce

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// ledger is a store that records what it is asked to insert, and takes a while.
type ledger struct {
	takes time.Duration
	bad   uuid.UUID // always refused

	mu      sync.Mutex
	batches []int
}

func (l *ledger) insert(ctx context.Context, jobs []jobstore.NewJob) ([]jobstore.Accepted, error) {
	l.mu.Lock()
	l.batches = append(l.batches, len(jobs))
	l.mu.Unlock()
	select {
	case <-time.After(l.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	accepted := make([]jobstore.Accepted, len(jobs))
	for i, job := range jobs {
		if job.JobID == l.bad {
			return nil, fmt.Errorf("insert %s: %w", job.JobID, jobevent.ErrInvalid)
		}
		accepted[i] = jobstore.Accepted{JobID: job.JobID}
	}
	return accepted, nil
}

func TestConcurrentJobsShareAStatementAndEachGetsItsResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &ledger{takes: time.Millisecond, bad: uuid.New()}
		singles := &Coalescer{Insert: store.insert, Patience: time.Minute}
		var all sync.WaitGroup
		for i := range 100 {
			id := uuid.New()
			if i == 50 {
				id = store.bad
			}
			all.Go(func() {
				accepted, err := singles.Add(t.Context(), jobstore.NewJob{JobID: id})
				if refused := errors.Is(err, jobevent.ErrInvalid); refused != (id == store.bad) || err == nil && accepted.JobID != id {
					t.Errorf("%s was answered %s, %v", id, accepted.JobID, err)
				}
			})
		}
		all.Wait()
		// The first job goes at once, perhaps alone; the others go together. The batch with the bad job is repeated,
		// each job alone.
		together, inAll := 0, 0
		for _, n := range store.batches {
			if n > 1 {
				together, inAll = together+1, inAll+n
			}
		}
		if together > 3 || inAll < 98 {
			t.Errorf("inserted in batches of %v", store.batches)
		}
	})
}

func TestSingleJobDoesNotWaitForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &ledger{takes: time.Millisecond}
		singles := &Coalescer{Insert: store.insert, Patience: time.Minute}
		for range 3 {
			began := time.Now()
			if _, err := singles.Add(t.Context(), jobstore.NewJob{JobID: uuid.New()}); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took != store.takes {
				t.Errorf("took %s, the store %s", took, store.takes)
			}
		}
	})
}

func TestRequestThatLeavesDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &ledger{takes: time.Hour}
		singles := &Coalescer{Insert: store.insert, Patience: time.Minute}
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := singles.Add(ctx, jobstore.NewJob{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who left was answered %v", err)
		}
		began := time.Now()
		if _, err := singles.Add(t.Context(), jobstore.NewJob{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a store that hangs answered %v", err)
		}
		if waited := time.Since(began); waited > time.Minute {
			t.Errorf("waited %s for a store that hangs", waited)
		}
	})
}

func TestSlowStatementDelaysOnlyItsOwnJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan struct{})
		insert := func(_ context.Context, jobs []jobstore.NewJob) ([]jobstore.Accepted, error) {
			if len(jobs) == 1 && jobs[0].EventID == "slow" {
				<-slow
			}
			return make([]jobstore.Accepted, len(jobs)), nil
		}
		singles := &Coalescer{Insert: insert, Patience: time.Minute}
		add := func(id string) time.Duration {
			began := time.Now()
			if _, err := singles.Add(t.Context(), jobstore.NewJob{EventID: id}); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
		var held sync.WaitGroup
		held.Go(func() { add("slow") })
		synctest.Wait()
		if took := add("quick"); took != slowAfter {
			t.Errorf("who came first waited %s for a slow statement", took)
		}
		<-time.After(time.Second)
		if took := add("quick"); took != 0 {
			t.Errorf("who came later waited %s", took)
		}
		close(slow)
		held.Wait()
	})
}
