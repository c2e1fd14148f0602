// Package testwait waits in tests for conditions that another goroutine, process or clock fulfils.
package testwait

import (
	"context"
	"fmt"
	"os"
	"runtime"
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

// CheckPromptly fails the test if something took longer than a promised time. On a machine that has more to run than it
// has cores, as the load of the last minute shows, the time may be as many times longer.
func CheckPromptly(t testing.TB, what string, took, promised time.Duration) {
	t.Helper()
	var load float64
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(text), &load)
	}
	allowed := time.Duration(float64(promised) * max(1, load/float64(runtime.NumCPU())))
	t.Logf("%s took %s; %s is promised, and %s allowed at a load of %.1f", what, took, promised, allowed, load)
	if took > allowed {
		t.Errorf("%s took %s", what, took)
	}
}
