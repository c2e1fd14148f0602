package witness

import (
	"context"
	"os"
	"time"
)

// ErrorCode is that of a job of type WITNESS which fails as it should.
const ErrorCode = "TEST.FAILED"

// Payload of a WITNESS job.
type Payload struct {
	Key            string `json:"key"`
	Ms             int    `json:"ms"`             // how long it works
	Until          string `json:"until"`          // and until there is a file of this name
	Deaf           bool   `json:"deaf"`           // it does not mind its context
	FailAttempts   int    `json:"failAttempts"`   // up to this one they fail
	Fatal          bool   `json:"fatal"`          // and then are not tried again
	Panics         bool   `json:"panics"`         // it panics instead
	SnoozeAttempts int    `json:"snoozeAttempts"` // up to this one they ask for a later time
	Waits          bool   `json:"waits"`          // then for a callback
	Dies           bool   `json:"dies"`           // it takes its process with it
}

// Work takes the time that the job is to take. The error is the cause of the context's end.
func (p Payload) Work(ctx context.Context) error {
	for p.Until != "" && !exists(p.Until) {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			if !exists(p.Until) { // or it has worked enough by now
				return context.Cause(ctx)
			}
		}
	}
	done := ctx.Done()
	if p.Deaf {
		done = nil
	}
	timer := time.NewTimer(time.Duration(p.Ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-done:
		return context.Cause(ctx)
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
