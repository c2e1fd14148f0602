package schedulerdb

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

// wantIn asserts how many rows of a job the tables have.
func (h fixture) wantIn(job jobevent.Created, jobs, ended int) {
	h.Helper()
	var inJobs, inEnded int
	if err := h.pool.QueryRow(h.Context(), `SELECT (SELECT count(*) FROM jobs WHERE job_id = $1), (SELECT count(*) FROM ended WHERE job_id = $1)`,
		job.JobID).Scan(&inJobs, &inEnded); err != nil || inJobs != jobs || inEnded != ended {
		h.Errorf("jobs has %d rows and ended %d, want %d and %d, %v", inJobs, inEnded, jobs, ended, err)
	}
}

func TestACompletedJobMovesToEnded(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	h.ingest(job)
	h.wantIn(job, 1, 0)
	done := completed(job, 1)
	done.Output = json.RawMessage(`{"a": 1}`)
	first := h.events(h.settle(done))
	h.wantIn(job, 0, 1)
	// What was delivered before changes nothing, and is answered with the same event.
	again, repeated := h.ingest(job), h.settle(done)
	if len(again.Runs) > 0 || len(repeated.Runs) > 0 {
		t.Errorf("a completed job went out again: %+v, %+v", again.Runs, repeated.Runs)
	}
	for name, events := range map[string][]jobevent.Item{"ingest": h.events(again), "outcome": h.events(repeated), "report": h.report(job, 0)} {
		if len(events) != 1 || events[0].ID() != first[0].ID() || string(events[0].Data()) != string(first[0].Data()) {
			t.Errorf("%s returned %s, want %s", name, events, first)
		}
	}
	h.wantIn(job, 0, 1)
}

func TestACommandMovesACompletedJobBack(t *testing.T) {
	h := newFixture(t)
	parent, job := newJob(), newJob()
	h.ingest(parent)
	h.settle(completed(parent, 1))
	expires := time.Now().Add(time.Hour)
	job.OwnerID, job.OrderingKey, job.OrderNumber, job.FairnessKey = "acme", "k", 1, "f"
	job.ExpiresAt, job.KeepBuild, job.RetryPolicy = &expires, true, &retrypolicy.Policy{Type: retrypolicy.Fixed, DelayMs: 1}
	job.After, job.Inputs = []uuid.UUID{parent.JobID}, []jobevent.Input{{Name: "p", JobID: parent.JobID}}
	job.Event = json.RawMessage(`{"id": "1"}`)
	h.ingest(job)
	row := func() (columns map[string]any) {
		if err := h.pool.QueryRow(t.Context(), "SELECT to_jsonb(j) FROM jobs j WHERE job_id = $1", job.JobID).Scan(&columns); err != nil {
			t.Fatal(err)
		}
		return columns
	}
	was := row()
	done := completed(job, 1)
	done.Output = json.RawMessage(`{"a": 1}`)
	h.settle(done)
	before := h.wantStatus(job, jobstate.Completed)
	h.order(job, 1, jobevent.CommandCancel)
	h.wantIn(job, 1, 0)
	after := h.wantStatus(job, jobstate.Completed)
	if after.LastCommand == nil || after.LastCommand.Applied || after.Version != before.Version+1 ||
		string(after.Output) != string(before.Output) || len(after.History) != len(before.History)+1 ||
		!after.StartedAt.Equal(*before.StartedAt) || !after.FinishedAt.Equal(*before.FinishedAt) {
		t.Errorf("the job was %+v and is %+v", before, after)
	}
	var changed []string
	for column, is := range row() {
		if !reflect.DeepEqual(was[column], is) {
			changed = append(changed, column)
		}
	}
	slices.Sort(changed)
	if want := []string{"command_seq", "finished_at", "history", "last_command", "lease_expires_at", "moves", "output",
		"partition", "rank", "started_at", "status", "updated_at", "version"}; !slices.Equal(changed, want) {
		t.Errorf("changed columns are %s, want %s", changed, want)
	}
	h.ingest(job)
	h.settle(done)
	h.wantIn(job, 1, 0)
}

// A new column of jobs belongs into ended too, unless a completed job has no value in it.
func TestEndedHasTheColumnsOfACompletedJob(t *testing.T) {
	h := newFixture(t)
	var missing []string
	if err := h.pool.QueryRow(t.Context(), `SELECT array_agg(attname::text ORDER BY attname) FROM pg_attribute a
		WHERE attrelid = 'jobs'::regclass AND attnum > 0 AND NOT attisdropped
			AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'ended'::regclass AND attname = a.attname)`).
		Scan(&missing); err != nil {
		t.Fatal(err)
	}
	if want := []string{"asked", "blocked_by", "callback_deadline_at", "cancel_requested_at", "due_at", "error_code", "error_message",
		"lane", "lease_expires_at", "lost_count", "partition", "rank", "status", "waits_for", "worker_id"}; !slices.Equal(missing, want) {
		t.Errorf("ended lacks %s, want %s", missing, want)
	}
}

// Outcomes, commands and repeated arrivals of the same jobs race. Each transaction may find a job in the other table
// than the one in which it was a moment ago.
func TestJobsThatMoveAreNeitherLostNorDoubled(t *testing.T) {
	h := newFixture(t)
	jobs := newJobs(60)
	for _, run := range h.ingest(jobs...).Runs {
		if run.Attempt != 1 {
			t.Fatal(run)
		}
	}
	h.heartbeat("w1", 100, []int32{0, 1, 2, 3})
	var group errgroup.Group
	for worker := range 4 {
		random := rand.New(rand.NewPCG(uint64(worker), 1))
		group.Go(func() error {
			for range 30 {
				var some []jobevent.Created
				for _, i := range random.Perm(len(jobs))[:10] {
					some = append(some, jobs[i])
				}
				var outcomes []Outcome
				var commands []jobevent.Command
				for i, job := range some {
					outcomes = append(outcomes, completed(job, 1))
					commands = append(commands, jobevent.Command{JobID: job.JobID, Number: 1 + i%2, Command: jobevent.CommandRetry, By: "tester"})
				}
				if _, err := h.Settle(t.Context(), outcomes); err != nil {
					return err
				}
				if _, err := h.Command(t.Context(), commands); err != nil {
					return err
				}
				if effects, err := h.Ingest(t.Context(), some); err != nil || len(effects.Runs) > 0 {
					t.Errorf("arrivals that were stored before: %+v", effects.Runs)
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	var rows, distinct, completed, attempts int
	if err := h.pool.QueryRow(t.Context(), `SELECT count(*), count(distinct job_id), count(*) FILTER (WHERE status = 'COMPLETED'), sum(attempt) FROM all_jobs`).
		Scan(&rows, &distinct, &completed, &attempts); err != nil {
		t.Fatal(err)
	}
	if n := len(jobs); rows != n || distinct != n || completed != n || attempts != n {
		t.Errorf("%d rows of %d jobs, %d completed in %d attempts", rows, distinct, completed, attempts)
	}
}
