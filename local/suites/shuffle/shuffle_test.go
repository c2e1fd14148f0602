package shuffle

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

var seeds = flag.Int("shuffle.seeds", 8, "how many orders are tried at once")

func TestMain(m *testing.M) { pgtest.Main(m) }

// end is the result of a job, as far as it does not depend on the order of events. An attempt that was lost with its
// worker only adds one attempt.
type end struct {
	status     jobstate.Status
	retryCount int
	errorCode  string
	output     string
	outcomes   []string // of attempts, except those lost with their worker
	commands   int      // that were applied or refused
	dead       int      // dead letters
}

func TestEveryEventTwiceInAnyOrderEndsTheSame(t *testing.T) {
	t.Parallel()
	plain := open(t, 15*time.Second, first)
	plain.submit(rand.New(rand.NewPCG(0, 0)), never)
	plain.runInOrder()
	want := plain.ends()
	for i := range kinds {
		if k := &kinds[i]; want[k.name].status != k.status || want[k.name].dead != k.dead {
			t.Errorf("in order, a job that %s ends as %+v", k.name, want[k.name])
		}
	}
	mishaps := map[string]int{}
	for round := range 5 {
		t.Run(fmt.Sprintf("shuffled %d", round), func(t *testing.T) { shuffle(t, round**seeds, want, mishaps) })
		if t.Failed() || len(missing(mishaps)) == 0 {
			return
		}
	}
	t.Errorf("never %s: these runs prove little", missing(mishaps))
}

// shuffle runs several orders at once, and adds up their mishaps.
func shuffle(t *testing.T, from int, want map[string]end, mishaps map[string]int) {
	var all sync.Mutex
	for seed := from; seed < from+*seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(uint64(seed), 0))
			h := open(t, 20*time.Millisecond, random(rnd))
			h.rnd = rnd
			h.submit(rnd, oneIn(rnd, 4))
			h.runShuffled(rnd)
			h.compare(want)
			h.checkCallbacks()
			h.mishaps[outcomeRefused] = h.workers.refused
			t.Log(h.mishaps)
			all.Lock()
			defer all.Unlock()
			for what, n := range h.mishaps {
				mishaps[what] += n
			}
		})
	}
}

// missing returns the mishaps that did not happen. Some depend on the clock too, so any of them may be missing from
// some orders.
func missing(mishaps map[string]int) []string {
	return slices.DeleteFunc([]string{
		acceptedNotPublished, deliveredAgain, killedBeforePublish, settledNotPublished, workerFrozen, workerKilled, outcomeRefused,
		wiped, calledBackEarly, packedTogether, killedBetweenItems,
	}, func(what string) bool { return mishaps[what] > 0 })
}

func (h *fixture) compare(want map[string]end) {
	h.t.Helper()
	for name, got := range h.ends() {
		if !reflect.DeepEqual(got, want[name]) {
			h.t.Errorf("a job that %s ended as\n%+v, in order it ends as\n%+v", name, got, want[name])
		}
	}
}

// runInOrder delivers all events, each once and in order, before anything else happens.
func (h *fixture) runInOrder() {
	h.t.Helper()
	for range 1000 {
		h.publish(h.t, h.workers.fill())
		if h.inOrder(h.t) {
			continue
		}
		if h.ended() {
			return
		}
		h.publish(h.t, h.workers.reap())
		if items, done := h.workers.finish(); done {
			h.publish(h.t, items)
			continue
		}
		h.hurrySuspects()
		h.tick("dispatch", h.dispatch.Tick)
		h.callBack(never)
		h.redrive(never)
	}
	h.t.Fatal("the jobs do not end, even in order")
}

// runShuffled takes random steps until nothing is left to be done.
func (h *fixture) runShuffled(rnd *rand.Rand) {
	h.t.Helper()
	lose := oneIn(rnd, 4)
	mishaps := 2 // the most workers that fail: a job may lose this many and still complete
	wipes := 3
	h.workers.lies = true
	for range 10_000 {
		h.publish(h.t, h.workers.fill())
		switch n := rnd.IntN(40); {
		case n < 2:
			h.tick("dispatch", h.dispatch.Tick)
		case n < 3:
			h.tick("watchdog", h.watchdog.Tick)
		case n < 5:
			h.publish(h.t, h.workers.heartbeat(h.workers.any()))
		case n < 15:
			if items, done := h.workers.finish(); done {
				h.publishPart(items, rnd)
			}
		case n < 16 && mishaps > 0:
			if h.leave() {
				mishaps--
			}
		case n < 18:
			h.publishPart(h.workers.reap(), rnd)
		case n < 19:
			h.publish(h.t, h.workers.wake())
		case n < 20:
			h.callBack(lose)
			h.redrive(lose)
		case n < 21 && wipes > 0:
			wipes--
			h.wipe()
		case !h.shuffled(h.t, rnd):
			if h.ended() && len(h.workers.frozen) == 0 {
				return
			}
			h.reconcile()
		}
	}
	h.t.Fatalf("the jobs do not end: %+v", h.ends())
}

// publishPart publishes a worker's outcomes: a worker killed in between publishes none or some of them.
func (h *fixture) publishPart(items []jobevent.Item, rnd *rand.Rand) {
	h.t.Helper()
	if len(items) > 0 && rnd.IntN(6) == 0 {
		h.mishaps[settledNotPublished]++
		items = part(items, rnd)
	}
	h.publish(h.t, items)
}

// leave removes a worker in the midst of its work: the first is frozen, the others are killed.
func (h *fixture) leave() bool {
	w := h.workers.any()
	if !slices.ContainsFunc(w.held, func(a *held) bool { _, ends := h.jobs[a.JobID].next(a); return ends }) {
		return false
	}
	frozen := h.mishaps[workerFrozen] == 0
	if frozen {
		h.mishaps[workerFrozen]++
	} else {
		h.mishaps[workerKilled]++
	}
	h.workers.leave(w, frozen)
	return true
}

// ends reads all jobs as the API shows them, and checks the conditions that hold for each.
func (h *fixture) ends() map[string]end {
	h.t.Helper()
	for key, n := range h.workers.started {
		if n > 1 {
			h.t.Errorf("attempt %v was started %d times", key, n)
		}
	}
	all := map[string]end{}
	for id, j := range h.jobs {
		shown := h.look(id)
		e := end{
			status: shown.Status, retryCount: shown.RetryCount, output: string(shown.Snapshot.Output),
			dead: h.deadLetters(id, shown.Attempt),
		}
		if j.retries > 0 && shown.MaxRetryCount != j.retries {
			h.t.Errorf("a job that %s shows %d retries, %d hold", j.name, shown.MaxRetryCount, j.retries)
		}
		if shown.Snapshot.LastError != nil {
			e.errorCode = shown.Snapshot.LastError.ErrorCode
		}
		for _, move := range shown.Snapshot.History {
			if move.By == client {
				e.commands++
			}
		}
		if j.loose {
			all[j.name] = end{status: e.status, commands: e.commands, dead: e.dead}
			continue
		}
		for _, move := range shown.Snapshot.History {
			if move.Outcome != "" && !byChance(move) {
				e.outcomes = append(e.outcomes, move.Outcome)
			}
		}
		all[j.name] = e
	}
	return all
}

// byChance reports whether an attempt ended because its worker was lost: as lost if it had begun, otherwise as
// interrupted.
func byChance(move jobevent.Transition) bool {
	return move.Outcome == string(jobstate.KindLost) ||
		move.Outcome == string(jobstate.KindInterrupted) && move.Message != handsBack.Message
}

// deadLetters counts the dead letters of a job.
func (h *fixture) deadLetters(id uuid.UUID, attempts int) (n int) {
	for attempt := range attempts + 1 {
		if h.published[jobevent.DeadLetterID(id, attempt)] > 0 {
			n++
		}
	}
	return n
}
