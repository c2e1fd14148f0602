package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Snooze is an error with which a handler asks to run again after a time. No retry is counted.
type Snooze struct{ For time.Duration }

// Error describes it.
func (s *Snooze) Error() string { return "snoozed for " + s.For.String() }

// MaxResult is the most bytes of the JSON of a step's result.
const MaxResult = 256 << 10

const (
	longestSnooze = 30 * 24 * time.Hour // that a gateway accepts
	shownResult   = 1 << 10             // bytes of a result in the message of a failure
	maxName       = 200                 // characters that a gateway accepts
)

// Kept is a step that has ended, or a sleep, as it is kept for the later attempts of its job.
type Kept struct {
	Name   string
	Result json.RawMessage // of a sleep: nil or null
	Until  time.Time       // the end of a sleep; zero: it is no sleep
	Took   time.Duration   // how long the step ran
}

// Steps keeps the steps of a job.
type Steps struct {
	// Read returns the steps that earlier attempts have saved. It is called before the first step or sleep. nil: there
	// is no earlier attempt.
	Read func(ctx context.Context) ([]Kept, error)
	// Save keeps a step, and returns when it is kept. If the job has a step of its name already, Save changes nothing and
	// returns that one: two attempts may overlap, when one of them was taken for lost.
	Save func(Kept) (Kept, error)
}

// KeepSteps lets the attempt have steps. A worker calls it before the handler begins.
func (c *Checkpoint) KeepSteps(s Steps) { c.steps = s }

// Close lets no further step begin. It returns a channel that is closed when the results of the steps that run are
// saved. A worker calls it after the handler has returned, and does not settle the attempt before: a handler may return
// while goroutines of its run steps, and their results would be refused.
func (c *Checkpoint) Close() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.checkIdle()
	}
	return c.idle
}

// enter counts a step that begins. It returns false if none may begin.
func (c *Checkpoint) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.running++
	return true
}

func (c *Checkpoint) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if c.closed {
		c.checkIdle()
	}
}

// checkIdle is called with mu locked, after closed is set. No step begins then, so running is 0 once.
func (c *Checkpoint) checkIdle() {
	if c.running == 0 {
		close(c.idle)
	}
}

// Step runs a part of a handler and remembers its result. If an attempt of the job has a result of this name already,
// Step returns that, and does not run it again. Either way the result has been through JSON.
//
// A step that fails is not remembered. If the process dies after run has had its effect and before the result is
// stored, the step runs again: give the systems that it calls the job's id and the step's name as idempotency key.
//
// Steps may run side by side in goroutines. If the handler returns while steps run, its attempt ends when their results
// are saved; none begins after that.
//
// Each step of an attempt has another name; for the steps of a loop add an index. A name that no code uses any more is
// ignored. A result has at most 256 KiB of JSON, and a job at most 1,000 steps with 16 MiB.
func Step[T any](
	ctx context.Context, c *Checkpoint, name string, run func(ctx context.Context) (T, error),
) (result T, err error) {
	if !c.enter() {
		return result, fmt.Errorf("step %q does not run: the handler has returned: %w", name, ErrOver)
	}
	defer c.leave()
	known, found, err := c.begin(ctx, name)
	if err != nil {
		return result, err
	}
	if !found {
		if known, err = c.runStep(name, func() (any, error) { return run(ctx) }); err != nil {
			return result, err
		}
	}
	if !known.Until.IsZero() {
		return result, anotherKind(name)
	}
	if len(known.Result) == 0 {
		return result, nil
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
	known, found, err := c.begin(ctx, name)
	if err != nil {
		return err
	}
	if !found {
		if d <= 0 {
			return nil
		}
		known = Kept{Name: name, Until: time.Now().Add(d).UTC().Round(time.Millisecond)}
		if known, err = c.steps.Save(known); err != nil {
			return fmt.Errorf("save sleep %q: %w", name, err)
		}
	}
	if known.Until.IsZero() {
		return anotherKind(name)
	}
	if left := time.Until(known.Until); left > 0 {
		return &Snooze{min(left, longestSnooze)}
	}
	return nil
}

// Use takes a name for something that is kept elsewhere than with the steps. It refuses a name that a step or another
// such thing of the attempt has, and one that a gateway would refuse only after the step has run.
func (c *Checkpoint) Use(ctx context.Context, name string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if wrong := checkName(name); wrong != "" {
		return &Failure{InvalidName, fmt.Sprintf("the name of a step, sleep or wait %s: %.300q", wrong, name)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used[name] {
		return &Failure{StepRepeated, fmt.Sprintf("the attempt has two steps of the name %q", name)}
	}
	c.used[name] = true
	return nil
}

// checkName returns what is wrong with a name, or "".
func checkName(name string) string {
	switch {
	case name == "":
		return "must not be empty"
	case utf8.RuneCountInString(name) > maxName:
		return fmt.Sprintf("must have at most %d characters", maxName)
	case !utf8.ValidString(name):
		return "must be valid UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "must not contain control characters"
	}
	return ""
}

// begin returns the step of this name that an earlier attempt has saved. It refuses a name that the attempt has used,
// and a step that begins after the attempt should have ended.
func (c *Checkpoint) begin(ctx context.Context, name string) (known Kept, found bool, err error) {
	if c.steps.Save == nil {
		return known, false, &Failure{NoSteps, fmt.Sprintf(
			"step %q does not run: only pull workers keep steps, handlers of this worker save checkpoints", name)}
	}
	if err := c.Use(ctx, name); err != nil {
		return known, false, err
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.kept == nil {
		if err := c.read(ctx); err != nil {
			c.free(name)
			return known, false, fmt.Errorf("read the steps of earlier attempts: %w", err)
		}
	}
	if ctx.Err() != nil {
		return known, false, context.Cause(ctx)
	}
	known, found = c.kept[name]
	return known, found, nil
}

func (c *Checkpoint) read(ctx context.Context) error {
	var all []Kept
	if c.steps.Read != nil {
		var err error
		if all, err = c.steps.Read(ctx); err != nil {
			return err
		}
	}
	c.kept = make(map[string]Kept, len(all))
	for _, one := range all {
		c.kept[one.Name] = one
	}
	return nil
}

// free lets the handler use a name again.
func (c *Checkpoint) free(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.used, name)
}

// runStep runs a step for which there is no result, and stores its result.
func (c *Checkpoint) runStep(name string, run func() (any, error)) (Kept, error) {
	began := time.Now()
	value, err := run()
	if err != nil {
		c.free(name)
		return Kept{}, err
	}
	took := time.Since(began)
	result, err := JSON(fmt.Sprintf("the result of step %q", name), value)
	if err != nil {
		return Kept{}, err
	}
	if len(result) > MaxResult {
		return Kept{}, unkept(name, result, &Failure{ResultTooLarge, fmt.Sprintf("%d bytes are allowed", MaxResult)})
	}
	kept, err := c.steps.Save(Kept{Name: name, Result: result, Took: took})
	if refused := (*Failure)(nil); errors.As(err, &refused) {
		return Kept{}, unkept(name, result, refused)
	}
	if err != nil {
		return Kept{}, fmt.Errorf("save result of step %q: %w", name, err)
	}
	return kept, nil
}

// unkept returns the failure of a step that has had its effect although its result cannot be kept.
func unkept(name string, result json.RawMessage, why *Failure) *Failure {
	return &Failure{why.Code, fmt.Sprintf(
		"step %q has run, and its result of %d bytes cannot be kept: %s; the result begins with %s",
		name, len(result), why.Message, result[:min(len(result), shownResult)])}
}

func anotherKind(name string) *Failure {
	return &Failure{StepRepeated, fmt.Sprintf(
		"%q is a step in one attempt of the job and a sleep in another: give one of them another name", name)}
}
