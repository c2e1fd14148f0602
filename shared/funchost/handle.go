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
	// maxPanics is how often a handler may panic with the same batch before the batch counts as the cause.
	maxPanics = 3
	// patience is how long a batch is retried before it is given back: a rebalance waits for it, and the records of
	// partitions that this process keeps come again.
	patience = 15 * time.Second

	// The pauses between the attempts of a handler, a tick and a publication.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// panicError is a panic in the function's code.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("function panicked: %v", p.value) }

// LogFields returns the fields for telemetry.Trouble.
func (p *panicError) LogFields() []any { return []any{"stack", string(p.stack)} }

func isPanic(err error) bool {
	p := (*panicError)(nil)
	return errors.As(err, &p)
}

// neverBetter reports whether the error is permanent.
func neverBetter(err error) bool { return errors.Is(err, jobevent.ErrInvalid) || isPanic(err) }

// tooMuch reports whether the database exceeded its time limits with n events, so that fewer may succeed.
func tooMuch(err error, n int) bool { return n > 1 && pgpool.TimedOut(err) }

// isDue reports whether the error may be due to one of n events, or to their number.
func isDue(err error, n int) bool { return neverBetter(err) || tooMuch(err, n) }

// settle calls Handle until it succeeds. It gives up if the error is due to the batch (neverBetter, tooMuch), when ctx
// ends, and on any other error if enough returns true. It is no retry.UntilDone: an error that ends it is noted as one.
func (h *host) settle(ctx context.Context, batch []jobevent.Item, enough func() bool) ([]jobevent.Item, error) {
	wait := retry.Backoff(firstRetry, lastRetry)
	panics := 0
	for {
		events, err := h.call(ctx, batch)
		if err == nil || errors.Is(err, jobevent.ErrInvalid) {
			h.handling.Note(ctx, nil)
			return events, err
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("give up handling: %w", ctx.Err()) // the batch may not be the cause
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

// settleOnce does not repeat the call, except after a panic: the client of a request sends its event again.
func (h *host) settleOnce(ctx context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
	return h.settle(ctx, batch, func() bool { return true })
}

// call calls Handle once, and converts a panic to an error.
func (h *host) call(ctx context.Context, batch []jobevent.Item) (events []jobevent.Item, err error) {
	defer h.calls.Begin("handle")()
	ctx, spans := h.tracing.Handle(ctx, h.f.Name, h.transport(), batch)
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			events, err = nil, &panicError{p, debug.Stack()}
		}
		h.meter.Handled(batch, time.Since(began), err)
		spans.End(err)
	}()
	events, err = h.f.Handle(ctx, slices.Clone(batch)) // Handle may sort its batch
	if err != nil {
		return nil, err
	}
	setCausation(events, batch)
	spans.SetParents(events)
	return events, nil
}

// transport names the transport by which events are received.
func (h *host) transport() string {
	if h.cfg.FuncTransport == TransportHTTP {
		return telemetry.OverHTTP
	}
	return telemetry.OverKafka
}

// setCausation sets, on each published item about a job, the id of the handled item about that job.
func setCausation(events, handled []jobevent.Item) {
	causes := make(map[uuid.UUID]string, len(handled))
	for i := range handled {
		if job := handled[i].JobID(); job != uuid.Nil {
			causes[job] = handled[i].ID()
		}
	}
	for i := range events {
		if cause, known := causes[events[i].JobID()]; known && events[i].Cause() == "" {
			events[i].SetCause(cause)
		}
	}
}
