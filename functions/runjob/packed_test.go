package runjob

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/eventkeys"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// packed returns one event with the attempts, for one partition.
func (h *fixture) packed(partition int32, runs ...jobevent.Run) event.Event {
	h.t.Helper()
	var items [][]byte // few attempts have an event each, as dispatch publishes them
	var e event.Event
	for i, run := range runs {
		alone := h.event(run, partition).Alone()
		if i == 0 {
			e = alone
		}
		items = append(items, bytes.TrimSuffix(bytes.TrimPrefix(alone.DataEncoded, []byte(`{"items":[`)), []byte("]}")))
	}
	e.DataEncoded = slices.Concat([]byte(`{"items":[`), bytes.Join(items, []byte(",")), []byte("]}"))
	return e
}

func (h *fixture) noops(n int) []jobevent.Run {
	runs := make([]jobevent.Run, n)
	for i := range runs {
		runs[i] = h.run("SIMULATION", noop)
	}
	return runs
}

func TestARecordIsDoneWhenAllItsAttemptsAre(t *testing.T) {
	h := newFixture(t)
	w := h.start(nil)
	runs := append(h.noops(20), h.run("BLOCK", ""))
	h.send(h.packed(3, runs...))
	long := runs[20]
	h.untilStarted(long)
	for _, run := range runs[:20] {
		h.outcome(run)
	}
	key := workerdb.Key{JobID: long.JobID, Attempt: 1}
	w.untilPool(h, "the short ones are done", func(p *pool.Pool) bool { return len(p.List()) == 1 })
	if to, _ := w.trackerOf(key).Committable(); to != 0 {
		t.Errorf("up to %d could be committed while an attempt of the record runs", to)
	}
	h.open(long)
	h.outcome(long)
	h.untilCommitted(1)
}

// Otherwise a scaler would see no lag, and stop the worker in which a long attempt runs.
func TestARecordThatAnAttemptSharesStaysUncommittedUntilTheAttemptEnds(t *testing.T) {
	h := newFixture(t)
	w := h.start(nil)
	runs := append(h.noops(5), h.run("BLOCK", ""))
	h.send(h.packed(3, runs...))
	h.untilStarted(runs...)
	for _, run := range runs[:5] {
		h.outcome(run)
	}
	if passed := w.pool.Pass(0, maxHeldBack); len(passed) > 0 {
		t.Errorf("%d records are passed by, and hold back none", len(passed))
	}
	h.open(runs[5])
	if e := h.outcome(runs[5]); e.Type() != jobevent.TypeCompleted || h.startsOf(runs[5]) != 1 {
		t.Errorf("published %v", e)
	}
	h.untilCommitted(1)
}

// Partitions move between workers, and attempts are packed differently when they are republished.
func TestEachAttemptStartsOnceHoweverItIsPackedAndRepeated(t *testing.T) {
	h := newFixture(t)
	h.start(nil)
	h.start(nil)
	runs := h.noops(300)
	for round := range 4 {
		size := []int{1, 64, 7, 33}[round]
		for n := 0; n < len(runs); n += size {
			part := runs[n:min(n+size, len(runs))]
			if size == 1 {
				h.order(part...)
				continue
			}
			h.send(h.packed(int32(n+round)%jobevent.RunPartitions, part...))
		}
	}
	for _, run := range runs {
		h.outcome(run)
	}
	for _, run := range runs {
		if n := h.startsOf(run); n != 1 {
			t.Errorf("started %d times", n)
		}
	}
	h.untilCommitted(300 + 5 + 43 + 10)
}

// If an event has more attempts than there is room for, the others wait in the worker unclaimed.
func TestAnEventWithMoreAttemptsThanThereIsRoomForIsClaimedPartByPart(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(c *Config, _ *timing) { c.PoolSize, c.QueueSize = 2, 4 })
	runs := make([]jobevent.Run, 60)
	for i := range runs {
		runs[i] = h.run("BLOCK", "")
	}
	h.send(h.packed(1, runs...))
	h.until("the pool is full", func() bool { return len(h.starts) == 2 })
	w.untilPool(h, "it claims no more", func(p *pool.Pool) bool { return p.Figures().Held > w.cfg.QueueSize/2 })
	if n := h.count("SELECT count(*) FROM attempts WHERE outcome IS NULL"); n > 6 {
		t.Errorf("%d attempts claimed, want at most 6", n)
	}
	h.openAll()
	for _, run := range runs {
		h.outcome(run)
	}
	h.untilCommitted(1)
}

func TestAnUnreadableItemIsRejectedAlone(t *testing.T) {
	h := newFixture(t)
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.kafka.Keys, err = eventkeys.Open(path); err != nil {
		t.Fatal(err)
	}
	h.start(nil)
	runs := h.noops(3)
	runs[1].Attempt = 0
	e := h.packed(5, runs...)
	e.DataEncoded = append(bytes.TrimSuffix(e.DataEncoded, []byte("]}")), `,17]}`...)
	empty := h.packed(5, h.noops(1)...)
	empty.DataEncoded = []byte(`{"items":[]}`)
	signed := []event.Event{e, empty}
	h.kafka.Keys.Sign(signed)
	h.send(signed...)
	h.outcome(runs[0])
	h.outcome(runs[2])
	h.until("they are rejected", func() bool { return h.kinds[jobevent.TypeRejected] == 3 })
	h.untilCommitted(2)
	h.mu.Lock()
	defer h.mu.Unlock()
	ids := map[string]bool{}
	for _, e := range h.published {
		ids[e.ID()] = true
	}
	for _, end := range []string{"0/1", "0/3", "1"} {
		if id := fmt.Sprintf("%s/5/%s.rejected", jobevent.RunTopic(h.queue), end); !ids[id] {
			t.Errorf("no dead letter %s among %v", id, ids)
		}
	}
}

func TestOneCancelAmongSeveralItemsIsApplied(t *testing.T) {
	h := newFixture(t)
	h.start(nil)
	runs := []jobevent.Run{h.run("BLOCK", ""), h.run("BLOCK", "")}
	h.order(runs...)
	h.untilStarted(runs...)
	events := []jobevent.Item{h.cancel(runs[0]), h.cancel(runs[1])}
	packed, _ := jobevent.Pack(events)
	packed[0].DataEncoded = append(bytes.TrimSuffix(packed[0].DataEncoded, []byte("]}")), `,{"eventId":"1","jobId":3}]}`...)
	h.send(packed...)
	for _, run := range runs {
		if failed := h.failed(run); failed.Kind != jobevent.KindCancelled {
			t.Errorf("ended as %+v", failed)
		}
	}
}
