package schedulerdb

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// The store's statements, with the fast path of completed attempts, give the results of jobstate's rules for any
// sequence of events.
func TestTheStoreFollowsTheRulesOfJobstate(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	h := newFixture(t)
	kinds := []jobstate.Kind{
		jobstate.KindCompleted, jobstate.KindWaiting, jobstate.KindFailed, jobstate.KindLost,
		jobstate.KindInterrupted, jobstate.KindCancelled, jobstate.KindSnoozed,
	}
	rapid.Check(t, func(rt *rapid.T) {
		// A job of an earlier run must not take the room of this one.
		h.tamper("DELETE FROM jobs")
		job := newJob()
		job.MaxRetryCount = rapid.IntRange(0, 2).Draw(rt, "maxRetryCount")
		h.ingest(job)
		model := jobstate.Job{Status: jobstate.Queued, Attempt: 1, MaxRetryCount: job.MaxRetryCount}
		version, moves, steps := int64(1), 1, 0
		// A drift stays until the watchdog counts, so not every step looks for one.
		checkLedger := func() {
			if drift := h.drift(); !drift.Empty() {
				rt.Fatalf("the ledger does not know of %+v", drift)
			}
		}
		apply := func(next jobstate.Job, changed bool) {
			if changed {
				model, version, moves = next, version+1, moves+1
			}
			// A transaction that makes a job ready also dispatches it: there is always room here.
			if next, ok := model.Dispatch(); ok {
				model, version, moves = next, version+1, moves+1
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": func(rt *rapid.T) {
				if model.Deleted {
					if got := h.deletedVersion(job); got != version {
						rt.Fatalf("deleted as version %d, not %d", got, version)
					}
					return
				}
				s := h.status(job)
				got := fmt.Sprint(s.Status, s.Attempt, s.RetryCount, s.Version, len(s.History))
				want := fmt.Sprint(model.Status, model.Attempt, model.RetryCount, version, min(moves, 100))
				if got != want {
					rt.Fatalf("the store has %s, the rules %s; history %+v", got, want, s.History)
				}
				if steps++; steps%3 == 0 {
					checkLedger()
				}
			},
			"outcome": func(rt *rapid.T) {
				o := ended(job, model.Attempt-rapid.IntRange(0, 1).Draw(rt, "old"), rapid.SampledFrom(kinds).Draw(rt, "kind"))
				o.Retryable, o.CallbackTimeout = rapid.Bool().Draw(rt, "retryable"), time.Minute
				if o.ErrorCode == "" {
					o.Retryable = false
				}
				h.settle(o)
				apply(model.Apply(jobstate.Outcome{Attempt: o.Attempt, Kind: o.Kind, Retryable: o.Retryable}, 3))
			},
			"command": func(rt *rapid.T) {
				number := model.CommandSeq + rapid.IntRange(0, 1).Draw(rt, "next")
				name := rapid.SampledFrom([]string{
					jobevent.CommandCancel, jobevent.CommandRetry, jobevent.CommandReschedule, jobevent.CommandDelete,
					jobevent.CommandChange,
				}).Draw(rt, "command")
				switch name {
				case jobevent.CommandReschedule:
					h.reschedule(job, number, time.Now().Add(time.Hour))
				case jobevent.CommandChange:
					change := priorityOf(rapid.IntRange(0, 9).Draw(rt, "priority"))
					change.Payload = []byte(`{"changed": true}`)
					h.change(job, number, change)
				default:
					h.order(job, number, name)
				}
				next, _, isNew := model.Command(number, jobstate.Command(name))
				apply(next, isNew)
			},
			"due": func(*rapid.T) {
				h.tamper("UPDATE jobs SET due_at = now() WHERE status IN ('SCHEDULED', 'RETRYING')")
				h.due()
				apply(model.Due())
			},
			"start": func(rt *rapid.T) {
				attempt, now := model.Attempt-rapid.IntRange(0, 1).Draw(rt, "old"), time.Now()
				h.heartbeat("w1", 5, []int32{0}, jobevent.ListedAttempt{JobID: job.JobID, Attempt: attempt, StartedAt: &now})
				apply(model.Start(attempt))
			},
		})
		checkLedger()
	})
}
