package readcache

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestAReaderWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c Cache[int]
		var reads atomic.Int32
		goOn := make(chan struct{})
		read := func(context.Context) (int, error) {
			reads.Add(1)
			<-goOn
			return 7, nil
		}
		first, leave := context.WithCancelCause(t.Context())
		answers := make(chan error, 2)
		go func() {
			_, err := c.Get(first, time.Hour, read)
			answers <- err
		}()
		synctest.Wait()
		gone := errors.New("gone")
		leave(gone)
		if err := <-answers; !errors.Is(err, gone) {
			t.Errorf("a cancelled reader got %v", err)
		}
		go func() {
			value, err := c.Get(t.Context(), time.Hour, read)
			if value != 7 {
				err = errors.Join(err, errors.New("another value"))
			}
			answers <- err
		}()
		synctest.Wait() // it waits for the read that is under way
		close(goOn)
		if err := <-answers; err != nil {
			t.Error(err)
		}
		if value, err := c.Get(t.Context(), time.Hour, read); value != 7 || err != nil || reads.Load() != 1 {
			t.Errorf("got %d, %v after %d reads", value, err, reads.Load())
		}
	})
}

// A change shows at once: neither the cached result nor the read under way is used any more.
func TestACacheThatIsForgottenReadsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c Cache[int]
		goOn := make(chan struct{})
		old := make(chan int, 1)
		go func() {
			value, _ := c.Get(t.Context(), time.Hour, func(context.Context) (int, error) {
				<-goOn
				return 1, nil
			})
			old <- value
		}()
		synctest.Wait()
		c.Forget()
		two := func(context.Context) (int, error) { return 2, nil }
		if value, err := c.Get(t.Context(), time.Hour, two); value != 2 || err != nil {
			t.Errorf("while the old one is read: %d, %v", value, err)
		}
		close(goOn)
		if value := <-old; value != 1 {
			t.Errorf("who came before has %d", value)
		}
		three := func(context.Context) (int, error) { return 3, nil }
		if value, err := c.Get(t.Context(), time.Hour, three); value == 1 || err != nil {
			t.Errorf("after the old one was read: %d, %v", value, err)
		}
		c.Forget()
		if value, err := c.Get(t.Context(), time.Hour, func(context.Context) (int, error) { return 4, nil }); value != 4 || err != nil {
			t.Errorf("of what was held: %d, %v", value, err)
		}
	})
}

func TestACostlyResultIsUsedForLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const small = 4
		var c Cache[int]
		took, reads := time.Duration(0), 0
		get := func() int {
			jobs := func(value int) int64 {
				if value == small {
					return fewJobs - 1
				}
				return fewJobs
			}
			value, err := c.GetRarely(t.Context(), time.Second, jobs, func(context.Context) (int, error) {
				<-time.After(took)
				reads++
				return reads, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
		for _, step := range []struct {
			after, took time.Duration
			want        int
		}{
			{0, costly - 1, 1},
			{time.Second - 1, 0, 1},
			{1, time.Minute, 2},
			{20*time.Minute - 1, 0, 2},
			{1, costly, 3},
			{time.Second - 1, 0, 3},
			{1, time.Minute, small},
			{time.Second - 1, 0, small},
			{1, 0, 5},
		} {
			<-time.After(step.after)
			took = step.took
			if got := get(); got != step.want {
				t.Errorf("after %s it is %d, want %d", step.after, got, step.want)
			}
		}
	})
}
