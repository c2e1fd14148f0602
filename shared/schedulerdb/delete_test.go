package schedulerdb

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// deletedVersion returns the version of a deleted job from the answer to a report. It fails if the answer is more than
// a tombstone.
func (h fixture) deletedVersion(job jobevent.Created) int64 {
	h.Helper()
	events := h.report(job, 0)
	if len(events) != 1 {
		h.Fatalf("a report returned %v", each(events, jobevent.Item.Type))
	}
	version, err := jobevent.DeletedVersion(events[0])
	if err != nil || events[0].Subject() != job.JobID.String() {
		h.Fatalf("a report returned %s, %v", events[0], err)
	}
	return version
}

// endedJobs returns a job in each terminal state.
func (h fixture) endedJobs() map[jobstate.Status]jobevent.Created {
	h.Helper()
	done, failed, cancelled := newJob(), newJob(), newJob()
	for _, job := range []*jobevent.Created{&done, &failed, &cancelled} {
		job.Event = json.RawMessage(`{"id": "secret"}`)
		job.Payload, job.RetryPolicy = json.RawMessage(`{"secret": 1}`), &retrypolicy.Policy{Type: retrypolicy.Fixed, DelayMs: 1}
	}
	h.ingest(done, failed, cancelled)
	good, bad := completed(done, 1), ended(failed, 1, jobstate.KindFailed)
	good.Output, bad.Retryable = json.RawMessage(`{"secret": 2}`), false
	h.settle(good, bad, ended(cancelled, 1, jobstate.KindCancelled))
	return map[jobstate.Status]jobevent.Created{
		jobstate.Completed: done, jobstate.Failed: failed, jobstate.Cancelled: cancelled,
	}
}

func TestAnEndedJobIsReducedToATombstone(t *testing.T) {
	h := newFixture(t)
	for status, job := range h.endedJobs() {
		t.Run(string(status), func(t *testing.T) {
			h := fixture{t, h.Store}
			before := h.status(job)
			effects := h.order(job, 1, jobevent.CommandDelete)
			events := h.events(effects)
			if len(events) != 1 || events[0].Type() != jobevent.TypeDeleted || events[0].Data() != nil {
				t.Fatalf("returned %v", each(events, jobevent.Item.Type))
			}
			if version := h.deletedVersion(job); version != before.Version+1 || events[0].ID() != jobevent.DeletedID(job.JobID, version) {
				t.Errorf("deleted as version %d after %d: %s", version, before.Version, events[0].ID())
			}
			var got jobstate.Status
			var text, history string
			if err := h.pool.QueryRow(t.Context(), "SELECT status, j::text, history FROM jobs j WHERE job_id = $1 AND deleted_at IS NOT NULL "+
				"AND payload::text = 'null' AND spec::text = '{}' AND event IS NULL AND output IS NULL AND moves = 1", job.JobID).
				Scan(&got, &text, &history); err != nil {
				t.Fatal(err)
			}
			var last jobevent.Transition
			if err := json.Unmarshal([]byte(history), &last); err != nil || got != status || last.Reason != jobevent.CommandDelete || last.By != "tester" {
				t.Errorf("left %s, %v", text, err)
			}
		})
	}
}

func TestADeletedJobStaysATombstone(t *testing.T) {
	h := newFixture(t)
	for status, job := range h.endedJobs() {
		t.Run(string(status), func(t *testing.T) {
			h := fixture{t, h.Store}
			first := h.events(h.order(job, 1, jobevent.CommandDelete))
			for by, effects := range map[string]func() emit.Effects{
				"the same command":   func() emit.Effects { return h.order(job, 1, jobevent.CommandDelete) },
				"a later delete":     func() emit.Effects { return h.order(job, 2, jobevent.CommandDelete) },
				"a retry":            func() emit.Effects { return h.order(job, 3, jobevent.CommandRetry) },
				"a reschedule":       func() emit.Effects { return h.reschedule(job, 4, time.Now()) },
				"its creation":       func() emit.Effects { return h.ingest(job) },
				"an outcome":         func() emit.Effects { return h.settle(completed(job, 1)) },
				"a failure":          func() emit.Effects { return h.settle(ended(job, 1, jobstate.KindFailed)) },
				"an unusable record": func() emit.Effects { return h.must(h.IngestUnusable(t.Context(), job, "odd")) },
				"two commands in batch": func() emit.Effects {
					return h.must(h.Command(t.Context(), []jobevent.Command{
						{JobID: job.JobID, Number: 5, Command: jobevent.CommandCancel},
						{JobID: job.JobID, Number: 6, Command: jobevent.CommandDelete},
					}))
				},
			} {
				events := h.events(effects())
				if !slices.Equal(each(events, jobevent.Item.ID), each(first, jobevent.Item.ID)) {
					t.Errorf("%s returned %v", by, each(events, jobevent.Item.ID))
				}
			}
		})
	}
}

// The scheduler has forgotten the job and the API has not: the delete must be answered, since no other event will be. A
// delete without a version is not answered.
func TestADeleteOfAForgottenJobIsAnsweredWithItsVersion(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	for version, want := range map[int64]int{0: 0, 7: 1} {
		events := h.events(h.must(h.Command(t.Context(), []jobevent.Command{
			{JobID: job.JobID, Number: 1, Command: jobevent.CommandDelete, Version: version},
			{JobID: job.JobID, Number: 2, Command: jobevent.CommandRetry},
		})))
		if len(events) != want {
			t.Fatalf("at version %d returned %v", version, each(events, jobevent.Item.Type))
		}
		for _, e := range events {
			if got, err := jobevent.DeletedVersion(e); err != nil || got != version || e.Subject() != job.JobID.String() {
				t.Errorf("returned %s, %v", e, err)
			}
		}
	}
	h.ingest(job)
	h.wantStatus(job, jobstate.Queued)
}

func TestOnlyAnEndedJobIsDeleted(t *testing.T) {
	h := newFixture(t)
	queued, parked, scheduled := newJob(), newJob(), scheduledJob(time.Hour)
	h.ingest(queued, parked, scheduled)
	h.settle(waiting(parked))
	for job, state := range map[*jobevent.Created]jobstate.Status{
		&queued: jobstate.Queued, &parked: jobstate.Waiting, &scheduled: jobstate.Scheduled,
	} {
		h.order(*job, 1, jobevent.CommandDelete)
		if s := h.wantStatus(*job, state); s.LastCommand.Applied || s.LastCommand.Reason != "the job is "+string(state) {
			t.Errorf("%s: %+v", state, s.LastCommand)
		}
	}
}

func TestOneBatchEndsAndDeletesAJob(t *testing.T) {
	h := newFixture(t)
	job := scheduledJob(time.Hour)
	h.ingest(job)
	effects := h.must(h.Command(t.Context(), []jobevent.Command{
		{JobID: job.JobID, Number: 1, Command: jobevent.CommandCancel},
		{JobID: job.JobID, Number: 2, Command: jobevent.CommandDelete},
		{JobID: job.JobID, Number: 3, Command: jobevent.CommandRetry},
	}))
	if events := h.events(effects); len(events) != 1 || events[0].Type() != jobevent.TypeDeleted {
		t.Fatalf("returned %v", each(events, jobevent.Item.Type))
	}
	var status jobstate.Status
	if err := h.pool.QueryRow(t.Context(), "SELECT status FROM jobs WHERE deleted_at IS NOT NULL").Scan(&status); err != nil || status != jobstate.Cancelled {
		t.Errorf("it is %s, %v", status, err)
	}
}
