package runjob

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

func TestRetryWaitsForAnUnavailableStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		began := time.Now()
		err := untilDone(t.Context(), new(telemetry.Trouble), func() error {
			if tries++; tries < 20 {
				return errors.New("away")
			}
			return nil
		})
		if err != nil || time.Since(began) > time.Minute || time.Since(began) < 10*time.Second {
			t.Errorf("%d tries in %v, %v", tries, time.Since(began), err)
		}
		invalid := fmt.Errorf("bad: %w", jobevent.ErrInvalid)
		if err := untilDone(t.Context(), new(telemetry.Trouble), func() error { return invalid }); !errors.Is(err, invalid) {
			t.Error(err)
		}
	})
}

func TestHeartbeatsComeAfterChangesAndPeriodically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHeartbeats()
		took := func() time.Duration {
			began := time.Now()
			b.wait(t.Context(), defaultTiming, false)
			return time.Since(began)
		}
		if d := took(); d != 3*time.Second {
			t.Errorf("nothing changes: %v", d)
		}
		b.change()
		b.change()
		if d := took(); d != time.Second {
			t.Errorf("something has changed: %v", d)
		}
		time.AfterFunc(1500*time.Millisecond, b.change)
		if d := took(); d != 1500*time.Millisecond {
			t.Errorf("something changes later: %v", d)
		}
	})
}

func TestAWorkerReapsOnlyAfterHeartbeatsWithoutAGap(t *testing.T) {
	t.Parallel()
	b, start := newHeartbeats(), time.Now()
	for _, c := range []struct {
		at  int
		may bool
	}{
		{0, false}, {3, false}, {7, false}, {10, true}, {13, true}, {17, true}, {22, false}, {26, false}, {30, false}, {32, true},
	} {
		if may := b.got(start.Add(time.Duration(c.at)*time.Second), 10*time.Second); may != c.may {
			t.Errorf("after %d s: %v", c.at, may)
		}
	}
}

func TestInvalidSettingsAreRefused(t *testing.T) {
	t.Parallel()
	good := Config{Queues: []string{"default", "mail-2"}, PoolSize: 1}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"QUEUES":     func(c *Config) { c.Queues = []string{"No"} },
		"POOL_SIZE":  func(c *Config) { c.PoolSize = 0 },
		"QUEUE_SIZE": func(c *Config) { c.QueueSize = -1 },
		"GRACE":      func(c *Config) { c.Grace = -1 },

		"RETAIN_ATTEMPTS":    func(c *Config) { c.RetainAttempts = jobevent.RecordsGone - 1 },
		"RETAIN_CHECKPOINTS": func(c *Config) { c.RetainCheckpoints = time.Hour },
		"GRACE: 30s is not shorter than SHUTDOWN_GRACE, which is 30s": func(c *Config) {
			c.Grace, c.Within = 30*time.Second, 30*time.Second
		},
		`QUEUES: "A B" must be`: func(c *Config) { c.Queues = []string{"A B"} },
	} {
		bad := good
		change(&bad)
		if err := bad.check(); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A heartbeat with all attempts could exceed the size of an event.
func TestAHeartbeatOfManyAttemptsIsPublishedInParts(t *testing.T) {
	t.Parallel()
	f := &Function{id: "w", heartbeats: newHeartbeats()}
	h := jobevent.Heartbeat{WorkerID: "w", Slots: 1200, JobTypes: []jobevent.JobType{{Name: "A"}}}
	now := time.Now()
	for range 1200 {
		h.Attempts = append(h.Attempts, jobevent.ListedAttempt{
			JobID: uuid.New(), Attempt: 1, StartedAt: &now,
			Progress: &jobevent.Progress{Percent: 1, Message: strings.Repeat("\x01", maxProgress)},
		})
	}
	h.Left = h.Attempts[:900]
	var listed, left []jobevent.ListedAttempt
	for part, e := range f.appendHeartbeat(t.Context(), nil, h) {
		got, err := jobevent.Decode[jobevent.Heartbeat](e)
		if err != nil || got.Part != part || got.Slots != 1200 || len(e.Data()) > 1<<20 {
			t.Errorf("part %d of %d bytes: %v", part, len(e.Data()), err)
		}
		listed, left = append(listed, got.Attempts...), append(left, got.Left...)
	}
	if len(listed) != 1200 || listed[1199].JobID != h.Attempts[1199].JobID {
		t.Errorf("%d attempts are listed", len(listed))
	}
	if len(left) != 900 || left[899].JobID != h.Left[899].JobID {
		t.Errorf("%d attempts have left", len(left))
	}
	if events := f.appendHeartbeat(t.Context(), nil, jobevent.Heartbeat{WorkerID: "w"}); len(events) != 1 {
		t.Errorf("a heartbeat that lists nothing is %d events", len(events))
	}
}

// The host compares the fence with the retention that the brokers report.
func TestRecordsMayNotOutliveTheRowsOfTheirAttempts(t *testing.T) {
	t.Parallel()
	fence := Config{RetainAttempts: 200 * time.Hour, Queues: []string{"default", "mail"}}.fence()
	if fence.Setting != "RETAIN_ATTEMPTS" || fence.Age != 200*time.Hour || !slices.Equal(fence.Topics, []string{"run-job", "run-job.mail"}) {
		t.Errorf("compares %+v", fence)
	}
	if fence := (Config{Queues: []string{"default"}}).fence(); len(fence.Topics) > 0 {
		t.Errorf("rows that are kept for ever are compared: %+v", fence)
	}
}

// A clock may have been stepped, or this machine may have been suspended.
func TestAGapThatOnlyTheDatabaseSawKeepsAWorkerFromReaping(t *testing.T) {
	t.Parallel()
	b, start := newHeartbeats(), time.Now()
	for second := range 20 {
		b.got(start.Add(time.Duration(second)*time.Second), 10*time.Second)
	}
	b.unseen(5*time.Second, 10*time.Second)
	if b.got(start.Add(20*time.Second), 10*time.Second) {
		t.Error("it may reap after a gap that only the database saw")
	}
}
