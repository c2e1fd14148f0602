package knative

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/local/demo"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// within allows for a busy machine: an idle one needs some five seconds.
const within = 90 * time.Second

// All functions are processes that start and stop behind a broker that delivers twice, late, out of order, and again
// after it has closed the connection. The whole demo ends as it should, no job is lost, no attempt runs twice, and
// invalid events become dead letters.
func TestBehindABrokerThatHasABadDayNothingIsLostAndNothingRunsTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("runs more than a dozen processes")
	}
	t.Parallel()
	seed := rand.Uint64() >> 32
	t.Logf("seed %d", seed)
	h := raise(t, rand.New(rand.NewPCG(seed, 0)), chances)
	o := newOutside(t, h.webhooks)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var poisoned []string
	var all errgroup.Group
	for name, work := range map[string]func() error{
		"demo": func() error {
			return demo.Run(ctx, h.api, demo.Installation{MailPage: h.mails.URL()}, t.Output())
		},
		"poison":     func() error { return poison(ctx, h, &poisoned) },
		"many":       func() error { return manyJobs(ctx, h, o) },
		"large":      func() error { return largestJob(ctx, h, o) },
		"ordered":    func() error { return ordered(ctx, h, o) },
		"chained":    func() error { return chained(ctx, h, o) },
		"cancelled":  func() error { return cancelled(ctx, h, o) },
		"controlled": func() error { return controlled(ctx, h, o) },
		"scheduled":  func() error { return scheduled(ctx, h, o) },
		"operated":   func() error { return operated(ctx, h, o) },
	} {
		all.Go(func() error {
			began := time.Now()
			if err := work(); err != nil {
				cancel() // the others need not wait
				return fmt.Errorf("%s, after %s: %w", name, time.Since(began).Round(time.Millisecond), err)
			}
			t.Logf("%s took %s", name, time.Since(began).Round(time.Millisecond))
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	} else if err := cameAgain(ctx, h, o); err != nil {
		t.Error(err)
	}
	for _, n := range h.broker.undelivered(poisoned...) {
		t.Errorf("not delivered: %+v", n)
	}
	if none := h.mishaps.missing(); len(none) > 0 {
		t.Errorf("this run proves nothing of what did not happen: %v", none)
	}
	h.checkScaling()
	h.broker.mu.Lock()
	defer h.broker.mu.Unlock()
	for _, typ := range []string{jobevent.TypesEnded, jobevent.TypesStatus} {
		if n := h.broker.taken[typ]; n <= len(poisons) {
			t.Errorf("%d events of type %s", n, typ)
		}
	}
}

// cameAgain: a job that is submitted when ingest has gone starts it once more.
func cameAgain(ctx context.Context, h *fixture, o *outside) error {
	ingest := h.services["ingest"]
	for ingest.running() {
		if !retry.Pause(ctx, lookEvery) {
			return errors.New("ingest never went")
		}
	}
	if _, err := h.ending(ctx, h.calling(o, 0, "again", nil), "COMPLETED", 1); err != nil {
		return err
	}
	if ingest.starts() < 2 { // a late event may have been first
		return errors.New("ingest did not come again")
	}
	return nil
}

// checkScaling: each function came when it was called.
func (h *fixture) checkScaling() {
	h.t.Helper()
	for name, s := range h.services {
		if s.starts() == 0 {
			h.t.Errorf("%s was never called", name)
		}
	}
	h.t.Log(h.broker.taken)
	h.t.Log(h.mishaps.count)
}
