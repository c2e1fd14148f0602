package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/outbound"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// Simulation runs jobs of type SIMULATION: their steps, one after another.
type Simulation struct {
	calls *outbound.Client
}

// NewSimulation returns the handler. HTTP_CALL uses the client.
func NewSimulation(calls *outbound.Client) *Simulation { return &Simulation{calls} }

// Run implements Handler.
func (s *Simulation) Run(ctx context.Context, a *Attempt) (Result, error) {
	steps, err := jobspec.ParseSimulation(a.Payload)
	if err != nil {
		return Result{}, invalidPayload(err)
	}
	for i, step := range steps {
		if err := s.step(ctx, a, step); err != nil {
			return Result{}, err
		}
		if done := i + 1; done < len(steps) {
			a.Progress(done*100/len(steps), "step "+strconv.Itoa(done)+" of "+strconv.Itoa(len(steps)))
		}
	}
	return Result{Output: json.RawMessage(`{"steps":` + strconv.Itoa(len(steps)) + `}`)}, nil
}

func (s *Simulation) step(ctx context.Context, a *Attempt, step jobspec.Step) error {
	switch step := step.(type) {
	case jobspec.Sleep:
		return wait(ctx, step.Duration)
	case jobspec.Log:
		a.Log(slog.LevelInfo, step.Message)
		return context.Cause(ctx)
	case jobspec.Compute:
		return compute(ctx, step.Iterations)
	case jobspec.HTTPCall:
		if step.URL == "" {
			return wait(ctx, step.Latency)
		}
		return s.httpCall(ctx, step)
	case jobspec.Fail:
		if step.Fails(a.Number) {
			return &Failure{Code: step.ErrorCode, Message: step.Message, Retryable: step.Retryable}
		}
		return nil
	default:
		return fmt.Errorf("run step: %T is not known", step)
	}
}

// wait returns after a time, or with the cause when the context ends.
func wait(ctx context.Context, d time.Duration) error {
	if !retry.Pause(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}

// compute keeps a core busy, and checks its context about every millisecond.
func compute(ctx context.Context, iterations int64) error {
	const chunk = 1 << 20
	x := uint64(88172645463325252)
	for iterations > 0 {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n := min(iterations, chunk)
		for range n {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		iterations -= n
	}
	if x == 0 { // xorshift never reaches zero, but without a use of x the compiler could remove the loop
		return errors.New("compute: reached zero")
	}
	return nil
}
