package runjob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// seals writes a file of keys, and returns its settings.
func seals(t *testing.T) (sealing.Config, *sealing.Sealer) {
	t.Helper()
	cfg := sealing.Config{File: filepath.Join(t.TempDir(), "keyset.json")}
	_, err := sealing.CreateKeyset(cfg.File)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := sealing.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, sealer
}

const canary = "canary-in-a-coal-mine"

// leaky writes the canary to the log, the progress and the outcome, and ends as its payload requests.
func leaky(_ context.Context, a *handlers.Attempt) (handlers.Result, error) {
	a.Log(slog.LevelInfo, canary)
	a.Progress(50, canary)
	switch string(a.Payload) {
	case `"` + canary + `"`:
		return handlers.Result{Output: json.RawMessage(`{"text":"` + canary + `"}`)}, nil
	case `"panic"`:
		panic(canary)
	case `"large"`:
		text := strings.Repeat("é", handlers.MaxOutput/2-1)
		return handlers.Result{Output: json.RawMessage(`"` + text + `"`)}, nil
	}
	return handlers.Result{}, errors.New(canary + strings.Repeat("x", 2*jobevent.MaxMessage))
}

func TestTheTextsOfAHandlerAreSealed(t *testing.T) {
	h := newFixture(t)
	cfg, sealer := seals(t)
	h.more = map[string]handlers.Handler{"LEAKY": leaky}
	h.start(func(c *Config, _ *timing) { c.Sealing = cfg })
	completes, panics, large := h.run("LEAKY", `"`+canary+`"`), h.run("LEAKY", `"panic"`), h.run("LEAKY", `"large"`)
	completes.Payload = sealer.Seal(sealing.OfJob(completes.JobID, sealing.Payload), completes.Payload)
	fails := h.run("LEAKY", `{}`) // submitted before there were keys
	h.order(completes, panics, large, fails)

	done, err := jobevent.DecodeAs[jobevent.Completed](h.outcome(completes), jobevent.TypeCompleted)
	if err != nil {
		t.Fatal(err)
	}
	output, err := sealer.Open(sealing.OfAttempt(completes.JobID, 1, sealing.Output), done.Output)
	if err != nil || !bytes.Contains(output, []byte(canary)) || bytes.Contains(done.Output, []byte(canary)) {
		t.Errorf("output %s: %s, %v", done.Output, output, err)
	}
	for _, failed := range []jobevent.Failed{h.failed(fails), h.failed(panics)} {
		message, err := sealer.OpenText(sealing.OfJob(failed.JobID, sealing.Message), failed.Message)
		if err != nil || !strings.Contains(message, canary) || strings.Contains(failed.Message, canary) ||
			len(message) > jobevent.MaxMessage || jobevent.CleanMessage(failed.Message) != failed.Message {
			t.Errorf("message %.40q of %d bytes: %.40q, %v", failed.Message, len(failed.Message), message, err)
		}
	}
	if e := h.outcome(large); e.Type() != jobevent.TypeCompleted || len(e.Data()) < handlers.MaxOutput {
		t.Errorf("an output of the greatest size: %s, %d bytes", e.Type(), len(e.Data()))
	}
	h.until("the log is published", func() bool { return h.kinds[jobevent.TypeAttemptLog] >= 4 })
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.published {
		if bytes.Contains(e.Data(), []byte(canary)) {
			t.Errorf("%s has it in plain text", e.Type())
		}
		if log, err := jobevent.DecodeAs[jobevent.AttemptLog](e, jobevent.TypeAttemptLog); err == nil {
			line, err := sealer.OpenText(sealing.OfAttempt(log.JobID, 1, sealing.LogLine), log.Lines[0].Text)
			if err != nil || line != canary {
				t.Errorf("log %q: %q, %v", log.Lines[0].Text, line, err)
			}
		}
	}
}

func TestAPayloadThatCannotBeOpenedIsRetried(t *testing.T) {
	h := newFixture(t)
	cfg, sealer := seals(t)
	_, other := seals(t)
	h.more = map[string]handlers.Handler{"LEAKY": leaky}
	h.start(func(c *Config, _ *timing) { c.Sealing = cfg })
	gone, moved, good := h.run("LEAKY", ""), h.run("LEAKY", ""), h.run("LEAKY", "")
	gone.Payload = other.Seal(sealing.OfJob(gone.JobID, sealing.Payload), gone.Payload)
	moved.Payload = sealer.Seal(sealing.OfJob(good.JobID, sealing.Payload), json.RawMessage(`"`+canary+`"`))
	h.order(gone, moved)
	for _, run := range []jobevent.Run{gone, moved} {
		if got := h.failed(run); got.ErrorCode != "WORKER.PAYLOAD_SEALED" || !got.Retryable || h.startsOf(run) != 0 {
			t.Errorf("got %+v, started %d times", got, h.startsOf(run))
		}
	}
}

func TestAWorkerWithoutKeysRunsNothingSealed(t *testing.T) {
	h := newFixture(t)
	_, sealer := seals(t)
	h.start(nil)
	run := h.run("SIMULATION", noop)
	run.Payload = sealer.Seal(sealing.OfJob(run.JobID, sealing.Payload), run.Payload)
	h.order(run)
	if got := h.failed(run); got.ErrorCode != "WORKER.PAYLOAD_SEALED" || !got.Retryable ||
		!strings.Contains(got.Message, sealing.ErrNoKey.Error()) {
		t.Errorf("got %+v", got)
	}
}

func TestAProgressIsSealedOnceForAllHeartbeats(t *testing.T) {
	t.Parallel()
	_, sealer := seals(t)
	a := &pool.Attempt{}
	a.SealWith(sealer)
	a.Progress.Store(&jobevent.Progress{Percent: 10, Message: canary})
	first := a.ReportedProgress()
	if again := a.ReportedProgress(); again != first || first.Percent != 10 || !jobevent.IsSealed(first.Message) {
		t.Errorf("reported %+v, then %+v", first, again)
	}
	a.Progress.Store(&jobevent.Progress{Percent: 20, Message: canary})
	if next := a.ReportedProgress(); next == first || next.Percent != 20 {
		t.Errorf("reported %+v", next)
	}
}
