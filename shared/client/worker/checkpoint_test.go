package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/worker"
)

// count is a handler that counts on from its checkpoint, to 3.
func count(_ context.Context, a *worker.Attempt, _ payload) (any, error) {
	n := 0
	if _, err := a.Checkpoint.Load(&n); err != nil {
		return nil, err
	}
	for n < 3 {
		n++
		if err := a.Checkpoint.Save(n); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func TestAHandlerContinuesFromItsCheckpoint(t *testing.T) {
	t.Parallel()
	for checkpoint, want := range map[string][]string{"": {"1", "2", "3"}, "null": {"1", "2", "3"}, "2": {"3"}} {
		work(t, worker.Options{}, count, func(g *gateway) {
			a := attempt("a")
			a.Checkpoint = json.RawMessage(checkpoint)
			if checkpoint == "" {
				a.Checkpoint = nil // as from an older gateway
			}
			g.give <- a
			g.start()
			after(time.Second)
			if r := g.one("a"); r.Status != client.Completed || string(r.Output) != "3" {
				t.Errorf("ended as %+v", r)
			}
			var got []string
			for i, s := range g.saves {
				got = append(got, string(s.Checkpoint))
				if s.Token != "a" || s.Number != int64(i+1) {
					t.Errorf("saved %+v", s)
				}
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("from %q it saved %v", checkpoint, got)
			}
		})
	}
}

func TestASaveIsRepeatedUntilItIsStored(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{}, count, func(g *gateway) {
		tries := 0
		g.save = func(client.WorkCheckpoint) int {
			if tries++; tries < 3 {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		}
		g.waiting("a")
		after(20 * time.Second)
		if r := g.one("a"); r.Status != client.Completed || len(g.saves) != 5 || g.saves[2].Number != 1 || g.saves[3].Number != 2 {
			t.Errorf("ended as %+v after %+v", r, g.saves)
		}
	})
}

func TestAnAttemptThatIsOverSavesNothing(t *testing.T) {
	t.Parallel()
	var saved, cause error
	work(t, worker.Options{}, func(ctx context.Context, a *worker.Attempt, _ payload) (any, error) {
		saved, cause = a.Checkpoint.Save(1), context.Cause(ctx)
		return nil, saved
	}, func(g *gateway) {
		g.save = func(client.WorkCheckpoint) int { return http.StatusConflict }
		g.waiting("a")
		after(time.Second)
		if !errors.Is(saved, durable.ErrOver) || !errors.Is(cause, worker.ErrLost) || len(g.resultsOf("a")) != 0 {
			t.Errorf("saved with %v, ended by %v, settled %v", saved, cause, g.resultsOf("a"))
		}
	})
}

func TestACheckpointThatIsTooLargeFailsTheJob(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{}, func(_ context.Context, a *worker.Attempt, _ payload) (any, error) {
		return nil, a.Checkpoint.Save(strings.Repeat("é", 32<<10))
	}, func(g *gateway) {
		g.waiting("a")
		after(time.Second)
		if r := g.one("a"); r.ErrorCode != durable.TooLarge || *r.Retryable || len(g.saves) != 0 {
			t.Errorf("ended as %+v after %d saves", r, len(g.saves))
		}
	})
}

// A stopping worker ends the contexts of its handlers, which may still save a checkpoint.
func TestAHandlerSavesWhenItsWorkerStops(t *testing.T) {
	t.Parallel()
	var g *gateway
	work(t, worker.Options{Grace: time.Second}, func(ctx context.Context, a *worker.Attempt, _ payload) (any, error) {
		<-ctx.Done()
		return nil, errors.Join(context.Cause(ctx), a.Checkpoint.Save("so far"))
	}, func(with *gateway) {
		g = with
		g.waiting("a")
		after(time.Second)
	})
	if r := g.one("a"); len(g.saves) != 1 || string(g.saves[0].Checkpoint) != `"so far"` || r.Status != client.WorkSnoozed {
		t.Errorf("saved %+v, ended as %+v", g.saves, r)
	}
}
