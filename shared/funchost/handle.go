package funchost

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// maxPanics is how often a handler may panic on the same batch before the batch is to blame.
	maxPanics = 3
	// patience is how long a batch is tried before it is given back: a rebalance waits for it, and
	// what is still ours afterwards comes again.
	patience = 15 * time.Second

	// The pauses between the tries of a handler, a tick and a publication.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// panicError is a panic of the function's code.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("function panicked: %v", p.value) }

// LogFields is for telemetry.Trouble.
func (p *panicError) LogFields() []any { return []any{"stack", string(p.stack)} }

func isPanic(err error) bool {
	p := (*panicError)(nil)
	return errors.As(err, &p)
}

// neverBetter reports whether the next try would meet the error again.
func neverBetter(err error) bool { return errors.Is(err, jobevent.ErrInvalid) || isPanic(err) }

// tooMuch reports whether the database ran out of time over n events, so that fewer may do.
func tooMuch(err error, n int) bool { return n > 1 && pgpool.TimedOut(err) }

// settle calls Handle until it succeeds. It gives up when the batch is to blame (neverBetter, tooMuch), when
// ctx ends, and for any other error when enough returns true.
func (h *host) settle(ctx context.Context, batch []jobevent.Item, enough func() bool) ([]jobevent.Item, error) {
	wait := retry.Backoff(firstRetry, lastRetry)
	panics := 0
	for {
		say, err := h.call(ctx, batch)
		if err == nil || errors.Is(err, jobevent.ErrInvalid) {
			h.handling.Note(ctx, nil)
			return say, err
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("give up handling: %w", ctx.Err()) // nothing is proven against the batch
		}
		h.handling.Note(ctx, err)
		if isPanic(err) {
			if panics++; panics == maxPanics {
				return nil, err
			}
		} else if enough() || tooMuch(err, len(batch)) {
			return nil, fmt.Errorf("handle %d events: %w", len(batch), err)
		}
		retry.Pause(ctx, wait.NextBackOff())
	}
}

// call calls Handle once. A panic is an error.
func (h *host) call(ctx context.Context, batch []jobevent.Item) (say []jobevent.Item, err error) {
	defer h.calls.Begin("handle")()
	ctx, spans := h.tracing.Handle(ctx, h.f.Name, h.transport(), batch)
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			say, err = nil, &panicError{p, debug.Stack()}
		}
		h.meter.Handled(batch, time.Since(began), err)
		spans.End(err)
	}()
	say, err = h.f.Handle(ctx, slices.Clone(batch)) // it may sort its batch
	if err != nil {
		return nil, err
	}
	setCausation(say, batch)
	spans.SetParents(say)
	return say, nil
}

// transport is what carries the events that are received.
func (h *host) transport() string {
	if h.cfg.FuncTransport == TransportHTTP {
		return telemetry.OverHTTP
	}
	return telemetry.OverKafka
}

// setCausation names, on each item published about a job, the item about that job that was handled.
func setCausation(say, handled []jobevent.Item) {
	causes := make(map[uuid.UUID]string, len(handled))
	for i := range handled {
		if job := handled[i].JobID(); job != uuid.Nil {
			causes[job] = handled[i].ID()
		}
	}
	for i := range say {
		if cause, known := causes[say[i].JobID()]; known && say[i].Cause() == "" {
			say[i].SetCause(cause)
		}
	}
}
