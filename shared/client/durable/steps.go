package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"
)

// Snooze is an error with which a handler asks to run again after a time. No retry is counted.
type Snooze struct{ For time.Duration }

// Error describes it.
func (s *Snooze) Error() string { return "snoozed for " + s.For.String() }

const (
	longestSnooze = 30 * 24 * time.Hour // that a gateway accepts
	shownResult   = 1 << 10             // bytes of a result in the message of a failure
)

// Step runs a part of a handler and remembers its result. If an attempt of the job has a result of this name already,
// Step returns that, and does not run it again. Either way the result has been through JSON.
//
// A step that fails is not remembered. If the process dies after run has had its effect and before the result is
// stored, the step runs again: give the systems that it calls the job's id and the step's name as idempotency key.
//
// Each step of an attempt has another name; for the steps of a loop add an index. A name that no code uses any more is
// ignored.
func Step[T any](
	ctx context.Context, c *Checkpoint, name string, run func(ctx context.Context) (T, error),
) (result T, err error) {
	known, err := c.begin(ctx, name)
	if err != nil {
		return result, err
	}
	if known.Result == nil {
		if known.Result, err = c.runStep(name, func() (any, error) { return run(ctx) }); err != nil {
			return result, err
		}
	}
	if err := json.Unmarshal(known.Result, &result); err != nil {
		return result, fmt.Errorf("read result of step %q: %w", name, err)
	}
	return result, nil
}

// Sleep lets a handler pause between its steps without keeping its slot: the first time, and while the time has not
// passed, it returns a *Snooze, which the handler returns as its error. The job's next attempt then continues after
// Sleep. The name must differ from those of steps.
func Sleep(ctx context.Context, c *Checkpoint, name string, d time.Duration) error {
	known, err := c.begin(ctx, name)
	if err != nil {
		return err
	}
	if known.WakeAt == nil {
		at := time.Now().Add(d).UTC().Round(time.Millisecond)
		known.WakeAt = &at
	}
	left := time.Until(*known.WakeAt)
	if left <= 0 {
		return nil
	}
	// A known sleep is saved again, too: a checkpoint is kept for a time after its last save.
	if err := c.remember(name, known); err != nil {
		return fmt.Errorf("save sleep %q: %w", name, err)
	}
	return &Snooze{min(left, longestSnooze)}
}

// Use takes a name for something that is remembered elsewhere than in the checkpoint. It refuses a name that a step or
// another such thing of the attempt has.
func (c *Checkpoint) Use(ctx context.Context, name string) error {
	_, err := c.begin(ctx, name)
	return err
}

// begin returns what is remembered of a step. It refuses a name that the attempt has used, and a step that begins after
// the attempt should have ended.
func (c *Checkpoint) begin(ctx context.Context, name string) (step, error) {
	if ctx.Err() != nil {
		return step{}, context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used[name] {
		return step{}, &Failure{StepRepeated, fmt.Sprintf("the attempt has two steps of the name %q", name)}
	}
	c.used[name] = true
	return c.steps[name], nil
}

// runStep runs a step for which there is no result, and stores its result.
func (c *Checkpoint) runStep(name string, run func() (any, error)) (json.RawMessage, error) {
	if err := c.hasRoom(name); err != nil {
		return nil, err
	}
	value, err := run()
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.used, name) // the handler may try it again
		return nil, err
	}
	result, err := JSON(fmt.Sprintf("the result of step %q", name), value)
	if err != nil {
		return nil, err
	}
	err = c.remember(name, step{Result: result})
	if large := (*Failure)(nil); errors.As(err, &large) {
		return nil, &Failure{large.Code, fmt.Sprintf(
			"step %q has run, and its result of %d bytes cannot be remembered: %s; the result begins with %s",
			name, len(result), large.Message, result[:min(len(result), shownResult)])}
	}
	if err != nil {
		return nil, fmt.Errorf("save result of step %q: %w", name, err)
	}
	return result, nil
}

// hasRoom returns an error if not even an empty result fits: then the step must not run.
func (c *Checkpoint) hasRoom(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := whole(c.own, with(c.steps, name, step{Result: json.RawMessage("null")}))
	if large := (*Failure)(nil); errors.As(err, &large) {
		return &Failure{large.Code, fmt.Sprintf("step %q does not run: %s", name, large.Message)}
	}
	return err
}

func (c *Checkpoint) remember(name string, s step) error {
	return c.change(func() { c.steps = with(c.steps, name, s) })
}

func with(steps map[string]step, name string, s step) map[string]step {
	more := maps.Clone(steps)
	more[name] = s
	return more
}
