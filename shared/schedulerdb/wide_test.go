package schedulerdb

import (
	"fmt"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// TestTwoHundredWorkersShareAQueue has a topic with a partition for each of 200 workers. All of them get the same
// number of attempts, none waits long for its turn, and a step costs milliseconds.
func TestTwoHundredWorkersShareAQueue(t *testing.T) {
	const workers, slots, each = 200, 4, 12
	h := newFixture(t)
	h.beats(wideBeats(workers, slots)...)
	jobs := newJobs(workers * each)
	began := time.Now()
	var out []emit.RunOrder
	for part := range 6 {
		out = append(out, h.ingest(jobs[part*workers*each/6:(part+1)*workers*each/6]...).Runs...)
	}
	ingested := time.Since(began)
	if len(out) != workers*slots {
		t.Fatalf("%d went out, want one for each slot", len(out))
	}
	total, steps, slowest := map[int16]int{}, 0, time.Duration(0)
	for len(out) > 0 {
		count := map[int16]int{}
		for _, run := range out {
			count[*run.Partition]++
			total[*run.Partition]++
		}
		for p := range int16(workers) {
			if len(out) >= workers*slots && count[p] != slots {
				t.Fatalf("%d attempts went to partition %d, want %d", count[p], p, slots)
			}
		}
		var next []emit.RunOrder
		for len(out) > 0 {
			n := min(100, len(out))
			outcomes := make([]Outcome, n)
			for i, run := range out[:n] {
				outcomes[i] = completed(jobevent.Created{JobID: run.JobID}, 1)
			}
			out, began = out[n:], time.Now()
			next = append(next, h.settle(outcomes...).Runs...)
			steps, slowest = steps+1, max(slowest, time.Since(began))
		}
		out = next
	}
	for p := range int16(workers) {
		if total[p] != each {
			t.Errorf("worker %d ran %d attempts, want %d", p, total[p], each)
		}
	}
	began = time.Now()
	h.beats(wideBeats(workers, slots)...)
	t.Logf("%d jobs ingested in %v; the slowest of %d steps that settle 100 took %v; 200 heartbeats %v",
		len(jobs), ingested, steps, slowest, time.Since(began))
	if slowest > 5*time.Second { // a hundred times the usual duration
		t.Errorf("a step took %v", slowest)
	}
}

// wideBeats returns the heartbeats of n workers, each with a partition of its own.
func wideBeats(workers, slots int) []jobevent.Heartbeat {
	beats := make([]jobevent.Heartbeat, workers)
	for i := range beats {
		beats[i] = plainBeat(fmt.Sprintf("worker-%03d", i), slots, int32(i))
	}
	return beats
}

// The ledger counts attempts in partitions beyond those of each topic, and the watchdog finds nothing to correct.
func TestTheLedgerCountsAttemptsInAnyPartition(t *testing.T) {
	h := newFixture(t)
	h.beats(plainBeat("low", 2, 3), plainBeat("high", 2, 150))
	jobs := newJobs(5)
	runs := h.ingest(jobs...).Runs
	h.wantPartitions(runs, map[int16]int{3: 2, 150: 2})
	counted, err := h.Count(t.Context())
	if err != nil || !counted.drift.Empty() {
		t.Errorf("drift %+v, %v", counted.drift, err)
	}
	for _, run := range runs {
		h.settle(completed(jobevent.Created{JobID: run.JobID}, 1))
	}
	if n := h.ledger().InFlight()["default"]; n != 1 {
		t.Errorf("%d are out, want the fifth", n)
	}
}
