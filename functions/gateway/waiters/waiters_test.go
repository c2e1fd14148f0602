package waiters

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// The poller reads every 50 ms, even while the database refuses it; it must not log every failure.
func TestWaitersLogFewLinesWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		ctx, stop := context.WithCancel(telemetry.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&out, nil))))
		back := time.Now().Add(150 * time.Second)
		e := New(func(_ context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
			if time.Now().Before(back) {
				return nil, errors.New("refused")
			}
			return ids, nil
		}, Never)
		go e.Run(ctx)
		e.Wait(ctx, uuid.New())
		stop()
		<-e.closing
		if time.Now().Before(back) {
			t.Error("the wait ended while the database was away")
		}
		if lines := strings.Count(out.String(), "\n"); lines != 4 {
			t.Errorf("logged %d lines in 150 s, want its begin, two reminders and its end: %s", lines, out.String())
		}
	})
}

// notifiedOnly makes waiters whose poll is too slow to find anything.
func notifiedOnly(ask func([]uuid.UUID) []uuid.UUID) *Waiters {
	e := New(func(_ context.Context, ids []uuid.UUID) ([]uuid.UUID, error) { return ask(ids), nil }, Never)
	e.every = time.Hour
	return e
}

func TestNotifiedEndIsReadWithoutThePoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		mine, other := uuid.New(), uuid.New()
		var ended []uuid.UUID
		var read [][]uuid.UUID
		e := notifiedOnly(func(ids []uuid.UUID) []uuid.UUID {
			read = append(read, ids)
			return ended
		})
		go e.Run(ctx)
		began := time.Now()
		done := make(chan uuid.UUID, 2)
		for _, id := range []uuid.UUID{mine, other} {
			go func() { e.Wait(ctx, id); done <- id }()
		}
		synctest.Wait()
		e.Notify([]uuid.UUID{mine, uuid.New()}) // of an older version
		synctest.Wait()
		if len(done) > 0 {
			t.Error("a job that has not ended was taken for one that has")
		}
		ended = []uuid.UUID{mine}
		e.Notify(ended)
		if id := <-done; id != mine || len(read[len(read)-1]) != 1 {
			t.Errorf("%s has ended, read were %v", id, read)
		}
		ended = []uuid.UUID{other}
		e.NotifyAll()
		if <-done; time.Since(began) > 0 {
			t.Errorf("it took %s", time.Since(began))
		}
		ended = []uuid.UUID{mine}
		e.Notify(ended) // before a request waits for it
		e.Wait(ctx, mine)
		if time.Since(began) > 0 {
			t.Errorf("an end that came before was found after %s", time.Since(began))
		}
		stop()
		<-e.closing
	})
}

func TestThePollWhileEndsAreNotifiedIsSlower(t *testing.T) {
	t.Parallel()
	for isNotified, want := range map[bool]time.Duration{true: pollSeldom, false: pollEvery} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			polls := 0
			e := New(func(_ context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
				if polls++; polls == 3 {
					return ids, nil
				}
				return nil, nil
			}, func() bool { return isNotified })
			go e.Run(ctx)
			began := time.Now()
			e.Wait(ctx, uuid.New())
			if took := time.Since(began); took != 2*want {
				t.Errorf("two polls take %s, want %s", took, 2*want)
			}
			stop()
			<-e.closing
		})
	}
}
