// Package durable lets a job continue where its last attempt ended: by a checkpoint, which the next attempt receives,
// and by steps and sleeps, which are remembered in it. Handlers of both kinds of Go workers use it (docs/long-jobs.md).
//
// A checkpoint is one JSON value. If it has steps, it is an object of two members, which the kits of all languages
// share: "$steps" has the steps by name, and "$data" the handler's own part. Otherwise it is the handler's own part.
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// MaxBytes is the most bytes of a checkpoint's JSON, its steps included.
const MaxBytes = 64 << 10

// ErrOver is the error of a save by an attempt that is over: it has ended, or runs elsewhere. The checkpoint is as
// before.
var ErrOver = errors.New("the attempt is over: it saves no checkpoint")

// Failure is an error that another attempt would meet again. It fails the job.
type Failure struct{ Code, Message string }

// Error returns the code and the message.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// The codes of a Failure.
const (
	TooLarge     = "WORKER.CHECKPOINT_TOO_LARGE"
	StepRepeated = "WORKER.STEP_REPEATED"
	NotJSON      = "WORKER.INVALID_OUTPUT"
)

// Checkpoint is the checkpoint of an attempt. It may be used by several goroutines.
type Checkpoint struct {
	save func(number int64, data json.RawMessage) error

	saving sync.Mutex // one save at a time; locked before mu

	mu     sync.Mutex
	own    json.RawMessage // nil: none
	steps  map[string]step
	used   map[string]bool // steps of this attempt
	number int64           // of the latest save
}

// step is a step that has ended, or a sleep.
type step struct {
	Result json.RawMessage `json:"result,omitempty"`
	WakeAt *time.Time      `json:"wakeAt,omitempty"` // only of a sleep
}

// stored is a checkpoint that has steps.
type stored struct {
	Steps map[string]step `json:"$steps"`
	Data  json.RawMessage `json:"$data,omitempty"`
}

// New returns the checkpoint of an attempt. saved is what its job's earlier attempts have saved; nil: nothing. save
// stores a checkpoint, and returns when it is stored. Its number is higher than that of each earlier save.
func New(saved json.RawMessage, save func(number int64, data json.RawMessage) error) *Checkpoint {
	c := &Checkpoint{save: save, steps: map[string]step{}, used: map[string]bool{}}
	if parts, ok := withSteps(saved); ok {
		c.own, c.steps = parts.Data, parts.Steps
	} else {
		c.own = saved
	}
	return c
}

// withSteps reads a checkpoint that has steps.
func withSteps(data json.RawMessage) (parts stored, ok bool) {
	return parts, json.Unmarshal(data, &parts) == nil && parts.Steps != nil
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
	return c.change(func() { c.own = data })
}

// change changes the checkpoint and stores it. After an error it is as before.
func (c *Checkpoint) change(change func()) error {
	c.saving.Lock()
	defer c.saving.Unlock()
	number, data, undo, err := c.changed(change)
	if err == nil {
		err = c.save(number, data)
	}
	if err != nil {
		undo()
	}
	return err
}

func (c *Checkpoint) changed(change func()) (number int64, data json.RawMessage, undo func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own, steps := c.own, c.steps
	undo = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.own, c.steps = own, steps
	}
	change()
	c.number++
	data, err = whole(c.own, c.steps)
	return c.number, data, undo, err
}

// whole returns a checkpoint as it is stored.
func whole(own json.RawMessage, steps map[string]step) (data json.RawMessage, err error) {
	data = own
	if _, alike := withSteps(own); alike || len(steps) > 0 {
		if data, err = encode(stored{steps, own}); err != nil {
			return nil, fmt.Errorf("write checkpoint: %w", err)
		}
	}
	if len(data) > MaxBytes {
		return nil, CheckpointTooLarge(len(data))
	}
	return data, nil
}

// CheckpointTooLarge returns the failure of a checkpoint with more than MaxBytes.
func CheckpointTooLarge(bytes int) *Failure {
	return &Failure{TooLarge, fmt.Sprintf("the checkpoint has %d bytes, %d are allowed", bytes, MaxBytes)}
}
