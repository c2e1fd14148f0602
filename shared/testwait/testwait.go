// Package testwait waits in tests for conditions that another goroutine, process or clock fulfils.
package testwait

import (
	"context"
	"testing"
	"time"
)

const (
	limit = time.Minute
	pause = 20 * time.Millisecond
)

// Until waits until holds returns true. After a minute it fails the test with the condition's name.
func Until(t testing.TB, condition string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); <-time.After(pause) {
		if t.Context().Err() != nil || time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", condition)
		}
	}
}

// Retry calls try until it succeeds. After a minute it fails the test with the last error.
func Retry(t testing.TB, try func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for err := try(); err != nil; err = try() {
		if t.Context().Err() != nil || time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(pause)
	}
}

// Within returns a context that ends after a while, before the test would hang.
func Within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}
