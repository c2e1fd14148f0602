// Package durable lets a job continue where its last attempt ended: by a checkpoint, which the next attempt receives,
// and by steps and sleeps, which are kept one by one (docs/long-jobs.md). Handlers of both kinds of Go workers have a
// checkpoint; handlers of pull workers also have steps and sleeps.
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// MaxBytes is the most bytes of a checkpoint's JSON.
const MaxBytes = 64 << 10

// ErrOver is the error of a save by an attempt that is over: it has ended, or runs elsewhere. Nothing has changed.
var ErrOver = errors.New("the attempt is over: it saves nothing")

// Failure is an error that another attempt would meet again. It fails the job.
type Failure struct{ Code, Message string }

// Error returns the code and the message.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// The codes of a Failure.
const (
	TooLarge       = "WORKER.CHECKPOINT_TOO_LARGE"
	ResultTooLarge = "WORKER.OUTPUT_TOO_LARGE"
	StepRepeated   = "WORKER.STEP_REPEATED"
	NoSteps        = "WORKER.NO_STEPS"
	NotJSON        = "WORKER.INVALID_OUTPUT"
	InvalidName    = "API.INVALID_JOB_REQUEST" // as a gateway refuses it
)

// Checkpoint is the checkpoint of an attempt, and its steps. It may be used by several goroutines.
type Checkpoint struct {
	save  func(number int64, data json.RawMessage) error
	steps Steps

	saving sync.Mutex // one save at a time; locked before mu
	number int64      // of the latest save; guarded by saving

	reading sync.Mutex      // one read of the steps at a time
	kept    map[string]Kept // steps of earlier attempts; nil: not yet read; guarded by reading

	mu      sync.Mutex
	own     json.RawMessage // nil: none
	used    map[string]bool // names of this attempt
	running int             // steps that run, or save their results
	closed  bool            // no further step begins
	idle    chan struct{}   // closed when closed is true and no step runs
}

// New returns the checkpoint of an attempt. saved is what its job's earlier attempts have saved; nil: nothing. save
// stores a checkpoint, and returns when it is stored. Its number is higher than that of each earlier save. Without
// KeepSteps the attempt cannot have steps.
func New(saved json.RawMessage, save func(number int64, data json.RawMessage) error) *Checkpoint {
	return &Checkpoint{save: save, own: saved, used: map[string]bool{}, idle: make(chan struct{})}
}

// Load decodes what an earlier attempt has saved last, or this one. It returns false if there is nothing.
func (c *Checkpoint) Load(into any) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.own) == 0 || string(c.own) == "null" {
		return false, nil
	}
	if err := json.Unmarshal(c.own, into); err != nil {
		return false, fmt.Errorf("read checkpoint: %w", err)
	}
	return true, nil
}

// Save stores a value in place of the last one. When it returns nil, the value is stored, and the job's next attempt
// loads it. ErrOver is the error of an attempt that is over, and a *Failure that of a value that is too large or that
// JSON cannot hold. After any other error it is not known whether the value is stored. Save may be called for a moment
// after the attempt's context has ended.
func (c *Checkpoint) Save(value any) error {
	data, err := JSON("the checkpoint", value)
	if err != nil {
		return err
	}
	if len(data) > MaxBytes {
		return CheckpointTooLarge(len(data))
	}
	c.saving.Lock()
	defer c.saving.Unlock()
	c.number++
	if err := c.save(c.number, data); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own = data
	return nil
}

// CheckpointTooLarge returns the failure of a checkpoint with more than MaxBytes.
func CheckpointTooLarge(bytes int) *Failure {
	return &Failure{TooLarge, fmt.Sprintf("the checkpoint has %d bytes, %d are allowed", bytes, MaxBytes)}
}
