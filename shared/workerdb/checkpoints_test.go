package workerdb_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// save saves a checkpoint, and reports whether it was saved.
func (f fixture) save(worker string, key workerdb.Key, number int64, data string) bool {
	f.Helper()
	open, err := f.store.SaveCheckpoints(f.Context(), worker, []workerdb.Checkpoint{{Key: key, Number: number, Data: []byte(data)}})
	if err != nil {
		f.Fatal(err)
	}
	return open[key]
}

// saved returns the checkpoint of a job; empty: none.
func (f fixture) saved(job uuid.UUID) string {
	f.Helper()
	all, err := f.store.Checkpoints(f.Context(), []uuid.UUID{job, uuid.New()})
	if err != nil || len(all) > 1 {
		f.Fatal(all, err)
	}
	return string(all[job])
}

func interrupted(key workerdb.Key) workerdb.Outcome {
	return workerdb.Outcome{Key: key, Kind: jobevent.KindInterrupted, StartedAt: time.Now(), FinishedAt: time.Now()}
}

// TestTheNextAttemptReadsTheLastFencedSave has attempts that save, end, fall silent and save late, in random order. The
// model is one value a job, which only the open attempt changes.
func TestTheNextAttemptReadsTheLastFencedSave(t *testing.T) {
	f := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		o := order()
		o.Attempt = 0
		var model string // what the next attempt reads
		open := false
		holder := map[int]string{} // worker of each attempt
		value, highest := 0, map[int]int64{}
		rt.Repeat(map[string]func(*rapid.T){
			"claim": func(rt *rapid.T) {
				if open {
					rt.Skip()
				}
				o.Attempt++
				open, holder[o.Attempt] = true, rapid.SampledFrom([]string{"w1", "w2"}).Draw(rt, "worker")
				f.claim(holder[o.Attempt], o)
			},
			"save": func(rt *rapid.T) {
				attempt := rapid.IntRange(1, o.Attempt+1).Draw(rt, "attempt")
				worker := rapid.SampledFrom([]string{"w1", "w2"}).Draw(rt, "by")
				number := highest[attempt] + rapid.Int64Range(-2, 2).Draw(rt, "number")
				value++
				data := fmt.Sprint(value)
				want := open && attempt == o.Attempt && worker == holder[attempt]
				if got := f.save(worker, workerdb.Key{JobID: o.JobID, Attempt: attempt}, number, data); got != want {
					rt.Fatalf("attempt %d of %d saves: %v, want %v", attempt, o.Attempt, got, want)
				}
				if _, any := highest[attempt]; want && (!any || number >= highest[attempt]) {
					model, highest[attempt] = data, number
				}
			},
			"end": func(rt *rapid.T) {
				if !open {
					rt.Skip()
				}
				open = false
				f.settle(holder[o.Attempt], interrupted(o.Key))
			},
			"lose": func(rt *rapid.T) {
				if !open {
					rt.Skip()
				}
				open = false
				f.heartbeat(holder[o.Attempt], workerdb.Held{Key: o.Key, StartedAt: time.Now().Add(-time.Hour)})
				f.silence(holder[o.Attempt], 11*time.Second)
				if lost := f.reap(); len(lost) != 1 {
					rt.Fatalf("reaped %+v", lost)
				}
			},
			"": func(rt *rapid.T) {
				if got := f.saved(o.JobID); got != model {
					rt.Fatalf("attempt %d reads %q, want %q", o.Attempt+1, got, model)
				}
			},
		})
		if open {
			f.settle(holder[o.Attempt], interrupted(o.Key))
		}
	})
}

// A save and the outcome of its attempt are written at the same time: the save that was accepted last stays, and none
// is accepted after the outcome.
func TestASaveBesideTheOutcomeIsReadOrRefused(t *testing.T) {
	f := open(t)
	for range 50 {
		o := order()
		f.claim("w1", o)
		var last int64
		var saving sync.WaitGroup
		first := make(chan struct{})
		saving.Go(func() {
			for n := int64(1); ; n++ {
				open, err := f.store.SaveCheckpoints(t.Context(), "w1", []workerdb.Checkpoint{{
					Key: o.Key, Number: n, Data: json.RawMessage(fmt.Sprint(n)),
				}})
				if err != nil {
					t.Error(err)
				}
				if n == 1 {
					close(first)
				}
				if !open[o.Key] {
					return
				}
				last = n
			}
		})
		<-first
		f.settle("w1", interrupted(o.Key))
		read := f.saved(o.JobID)
		saving.Wait()
		if read != fmt.Sprint(last) || f.saved(o.JobID) != read {
			t.Fatalf("after the outcome %s was read, then %s; %d was accepted last", read, f.saved(o.JobID), last)
		}
	}
}

func TestCheckpointsGoWhenTheirJobsCompleteOrByTheirAge(t *testing.T) {
	f := open(t)
	f.heartbeat("w1")
	done, old, asleep, fresh := order(), order(), order(), order()
	old.JobID[0], old.JobID[1] = 0, 1 // a UUIDv7 of 1970
	asleep.JobID[0], asleep.JobID[1] = 0, 1
	f.claim("w1", done, old, asleep, fresh)
	for _, o := range []workerdb.Order{done, old, asleep, fresh} {
		if !f.save("w1", o.Key, 1, `{"page": 7}`) {
			t.Fatal("not saved")
		}
	}
	if err := f.store.DeleteCheckpoints(t.Context(), []uuid.UUID{done.JobID}); err != nil {
		t.Fatal(err)
	}
	f.exec("UPDATE checkpoints SET saved_at = now() - interval '61 days' WHERE job_id = ANY($1)",
		[]uuid.UUID{old.JobID, fresh.JobID})
	f.cleanUp(0)
	for _, c := range []struct {
		o    workerdb.Order
		want string
	}{{done, ""}, {old, ""}, {asleep, `{"page": 7}`}, {fresh, `{"page": 7}`}} {
		if got := f.saved(c.o.JobID); got != c.want {
			t.Errorf("%s has %q, want %q", c.o.JobID, got, c.want)
		}
	}
}

// A heartbeat gives an attempt its row while it saves a checkpoint.
func TestASaveBesideAHeartbeatIsAccepted(t *testing.T) {
	f := open(t)
	for range 100 {
		o := order()
		f.claim("w1", o)
		var beating sync.WaitGroup
		beating.Go(func() {
			f.heartbeat("w1", workerdb.Held{Key: o.Key, TraceID: o.TraceID, TimeoutMs: 1000, StartedAt: time.Now().Add(-time.Second)})
		})
		if !f.save("w1", o.Key, 1, "1") {
			t.Error("an open attempt saved nothing")
		}
		beating.Wait()
		f.settle("w1", completed(o))
	}
}
