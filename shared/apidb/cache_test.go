package apidb

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhoWaitsForACacheWaitsAsLongAsItLikes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c cache[int]
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
			_, err := c.get(first, time.Hour, read)
			answers <- err
		}()
		synctest.Wait()
		gone := errors.New("gone")
		leave(gone)
		if err := <-answers; !errors.Is(err, gone) {
			t.Errorf("who has gone hears %v", err)
		}
		go func() {
			value, err := c.get(t.Context(), time.Hour, read)
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
		if value, err := c.get(t.Context(), time.Hour, read); value != 7 || err != nil || reads.Load() != 1 {
			t.Errorf("got %d, %v after %d reads", value, err, reads.Load())
		}
	})
}
