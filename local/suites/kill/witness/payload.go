package witness

import (
	"context"
	"fmt"
	"os"
	"time"
)

// ErrorCode is the error code of a WITNESS job that fails on purpose.
const ErrorCode = "TEST.FAILED"

// Payload is the payload of a WITNESS job.
type Payload struct {
	Key            string `json:"key"`
	Ms             int    `json:"ms"`             // how long it works
	Until          string `json:"until"`          // and until a file with this name exists
	Deaf           bool   `json:"deaf"`           // it ignores its context
	FailAttempts   int    `json:"failAttempts"`   // attempts up to this one fail
	Fatal          bool   `json:"fatal"`          // and are not retried
	Panics         bool   `json:"panics"`         // it panics instead
	SnoozeAttempts int    `json:"snoozeAttempts"` // attempts up to this one ask to run again later
	Waits          bool   `json:"waits"`          // then it waits for a callback
	Dies           bool   `json:"dies"`           // it kills its process
	Counts         int    `json:"counts"`         // it counts so far in its checkpoint first
	Receives       bool   `json:"receives"`       // only in a pull worker: it waits for the event of its key
	Calls          int    `json:"calls"`          // only in a pull worker: it calls so many jobs and waits for them
}

// EventType is the type of the events for which jobs wait.
const EventType = "com.example.kill"

// Called returns the key of a job that the job with a key calls.
func Called(key string, i int) string { return fmt.Sprintf("%s.%d", key, i) }

// CountEvery is the pause between two saves of a job that counts.
const CountEvery = 100 * time.Millisecond

// Work takes the time that the job asks for. The error is the cause of the context's end.
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
