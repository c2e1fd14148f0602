package runjob

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// pages is a handler that works through three pages, one after another. It saves after each, and waits for its gate
// after the second one of the first attempt.
func (h *fixture) pages(ctx context.Context, a *handlers.Attempt) (handlers.Result, error) {
	var done struct{ Page int }
	found, err := a.Checkpoint.Load(&done)
	if err != nil || found != (a.Number > 1) {
		return handlers.Result{}, &handlers.Failure{Code: "TEST.LOAD", Message: "it loads what it should not"}
	}
	started := done.Page
	for done.Page < 3 {
		done.Page++
		if err := a.Checkpoint.Save(done); err != nil {
			return handlers.Result{}, err
		}
		if a.Number == 1 && done.Page == 2 {
			return h.block(ctx, a)
		}
	}
	output, err := json.Marshal(started)
	return handlers.Result{Output: output}, err
}

func TestAnotherWorkerContinuesFromTheCheckpoint(t *testing.T) {
	h := newFixture(t)
	h.more = map[string]handlers.Handler{"PAGES": h.pages}
	first := h.start(func(c *Config, _ *timing) { c.Grace = 0 })
	run := h.run("PAGES", "")
	h.order(run)
	h.until("two pages are saved", func() bool { return h.count("SELECT count(*) FROM checkpoints WHERE data->>'Page' = '2'") == 1 })
	first.stop()
	if got := h.failed(run); got.Kind != jobevent.KindInterrupted {
		t.Fatalf("the first attempt ends with %+v", got)
	}
	h.start(nil)
	run.Attempt = 2
	h.order(run)
	done, err := jobevent.DecodeAs[jobevent.Completed](h.outcome(run), jobevent.TypeCompleted)
	if err != nil || string(done.Output) != "2" {
		t.Errorf("the second attempt continued from page %s, %v", done.Output, err)
	}
	if n := h.count("SELECT count(*) FROM checkpoints"); n != 0 {
		t.Errorf("%d checkpoints are left of a job that has completed", n)
	}
}

// The attempt is settled by another worker while its handler runs.
func TestAnAttemptThatIsOverSavesNoCheckpoint(t *testing.T) {
	h := newFixture(t)
	var saved error
	h.more = map[string]handlers.Handler{"LATE": func(_ context.Context, a *handlers.Attempt) (handlers.Result, error) {
		if err := a.Checkpoint.Save("in time"); err != nil {
			return handlers.Result{}, err
		}
		<-h.gate(a.Token)
		err := a.Checkpoint.Save("late")
		h.update(func() { saved = err })
		return handlers.Result{}, err
	}}
	h.start(nil)
	run := h.run("LATE", "")
	h.order(run)
	h.until("it has saved", func() bool { return h.count("SELECT count(*) FROM checkpoints") == 1 })
	h.loseAll()
	h.open(run)
	h.until("it has tried again", func() bool { return saved != nil })
	if !errors.Is(saved, durable.ErrOver) || h.count(`SELECT count(*) FROM checkpoints WHERE data::text = '"in time"'`) != 1 {
		t.Errorf("the late save returned %v", saved)
	}
}

// A worker that stops ends the contexts of its handlers. They may save what they have.
func TestAHandlerSavesWhenItsContextHasEnded(t *testing.T) {
	h := newFixture(t)
	h.more = map[string]handlers.Handler{"LAST": func(ctx context.Context, a *handlers.Attempt) (handlers.Result, error) {
		<-ctx.Done()
		return handlers.Result{}, errors.Join(ctx.Err(), a.Checkpoint.Save("so far"))
	}}
	w := h.start(func(c *Config, _ *timing) { c.Grace = 0 })
	run := h.run("LAST", "")
	h.order(run)
	h.untilStarted(run)
	w.stop()
	if n := h.count(`SELECT count(*) FROM checkpoints WHERE data::text = '"so far"'`); n != 1 {
		t.Error("not saved")
	}
}

func TestCheckpointsThatCannotBeStoredFailTheirJob(t *testing.T) {
	h := newFixture(t)
	h.more = map[string]handlers.Handler{"SAVE": func(_ context.Context, a *handlers.Attempt) (handlers.Result, error) {
		var n int
		if err := json.Unmarshal(a.Payload, &n); err != nil {
			return handlers.Result{}, err
		}
		if n == 0 {
			return handlers.Result{}, a.Checkpoint.Save(json.RawMessage(`{"a": 1, "a": 2}`))
		}
		return handlers.Result{}, a.Checkpoint.Save(strings.Repeat("<", n-2))
	}}
	h.start(nil)
	for payload, code := range map[string]string{
		"65536": "", "65537": "WORKER.CHECKPOINT_TOO_LARGE", "0": "WORKER.INVALID_OUTPUT",
	} {
		run := h.run("SAVE", payload)
		h.order(run)
		if code == "" {
			if e := h.outcome(run); e.Type() != jobevent.TypeCompleted {
				t.Errorf("%s bytes: %s", payload, e.Data())
			}
		} else if got := h.failed(run); got.ErrorCode != code || got.Retryable {
			t.Errorf("%s bytes: %+v", payload, got)
		}
	}
}

// Many handlers save at once, each several times and from several goroutines.
func TestTheLastSaveOfManyCounts(t *testing.T) {
	h := newFixture(t)
	h.more = map[string]handlers.Handler{"MANY": func(_ context.Context, a *handlers.Attempt) (handlers.Result, error) {
		var all sync.WaitGroup
		var failed error
		for range 4 {
			all.Go(func() {
				for n := range 5 {
					if err := a.Checkpoint.Save(n); err != nil {
						h.update(func() { failed = err })
					}
				}
			})
		}
		all.Wait()
		if err := errors.Join(failed, a.Checkpoint.Save("last")); err != nil {
			return handlers.Result{}, err
		}
		return handlers.Result{Snooze: time.Hour}, nil
	}}
	h.start(func(c *Config, _ *timing) { c.PoolSize = 100 })
	runs := make([]jobevent.Run, 100)
	for i := range runs {
		runs[i] = h.run("MANY", "")
	}
	h.order(runs...)
	for _, run := range runs {
		if got := h.failed(run); got.Kind != jobevent.KindSnoozed {
			t.Fatalf("%+v", got)
		}
	}
	if n := h.count(`SELECT count(*) FROM checkpoints WHERE data::text = '"last"' AND number = 21`); n != len(runs) {
		t.Errorf("%d of %d have the last one", n, len(runs))
	}
}

func TestCheckpointsAreSealed(t *testing.T) {
	h := newFixture(t)
	cfg, _ := seals(t)
	h.more = map[string]handlers.Handler{"SECRET": func(_ context.Context, a *handlers.Attempt) (handlers.Result, error) {
		var seen string
		found, err := a.Checkpoint.Load(&seen)
		if err != nil || found != (a.Number > 1) || found && seen != canary {
			return handlers.Result{}, &handlers.Failure{Code: "TEST.LOAD", Message: seen}
		}
		return handlers.Result{Snooze: time.Hour}, a.Checkpoint.Save(canary)
	}}
	w := h.start(func(c *Config, _ *timing) { c.Sealing = cfg })
	run := h.run("SECRET", "{}")
	for run.Attempt = 1; run.Attempt <= 2; run.Attempt++ {
		h.order(run)
		if got := h.failed(run); got.Kind != jobevent.KindSnoozed {
			t.Fatalf("attempt %d: %+v", run.Attempt, got)
		}
	}
	if n := h.count("SELECT count(*) FROM checkpoints WHERE data::text NOT LIKE '%" + canary + "%'"); n != 1 {
		t.Error("the checkpoint is not sealed")
	}
	w.stop()
	other := sealing.Config{File: filepath.Join(t.TempDir(), "other.json")}
	if _, err := sealing.CreateKeyset(other.File); err != nil {
		t.Fatal(err)
	}
	h.start(func(c *Config, _ *timing) { c.Sealing = other })
	h.order(run)
	if got := h.failed(run); got.ErrorCode != "WORKER.PAYLOAD_SEALED" || !got.Retryable {
		t.Errorf("with other keys: %+v", got)
	}
}
