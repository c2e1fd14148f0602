package fairshare_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/shared/fairshare"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestACallerWithoutAPlaceHoldsUpItselfOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shares := fairshare.New(3, 2)
		soon := func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			t.Cleanup(cancel)
			return ctx
		}
		place := func(caller string) func() {
			t.Helper()
			release, err := shares.Acquire(soon(), caller)
			if err != nil {
				t.Fatalf("%s has no place: %v", caller, err)
			}
			return release
		}
		first := place("a")
		place("a")
		if _, err := shares.Acquire(soon(), "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a third place for one caller: %v", err)
		}
		third := place("b")
		if _, err := shares.Acquire(soon(), "c"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a fourth place in all: %v", err)
		}
		var got atomic.Bool
		go func() {
			if release, err := shares.Acquire(t.Context(), "c"); err == nil {
				got.Store(true)
				release()
			}
		}()
		synctest.Wait()
		if got.Load() {
			t.Error("it did not wait")
		}
		third()
		synctest.Wait()
		if !got.Load() {
			t.Error("it was not let in when a place was free")
		}
		first()
		place("a")
	})
}
