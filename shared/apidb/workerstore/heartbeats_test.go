package workerstore_test

import (
	"encoding/json"
	"testing"

	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func heartbeat(id string, slots, free int, attempts ...jobevent.ListedAttempt) workerstore.Heartbeat {
	b := jobevent.Heartbeat{WorkerID: id, Slots: slots, Free: free, Attempts: attempts}
	body, err := json.Marshal(b)
	if err != nil {
		panic(err)
	}
	return workerstore.Heartbeat{Heartbeat: b, JSON: body}
}

func (h *fixture) see(t *testing.T, heartbeats ...workerstore.Heartbeat) {
	t.Helper()
	if err := h.Workers.See(t.Context(), heartbeats); err != nil {
		t.Fatal(err)
	}
}

func TestHeartbeatsAreStoredAsFiguresAndProgress(t *testing.T) {
	t.Parallel()
	h := open(t)
	job := h.Accept(t, apidbtest.NewJob())
	running := func(attempt int) statusstore.PublishedStatus {
		return apidbtest.Status(job.JobID, int64(attempt), jobstate.Running, func(s *jobevent.Status) { s.Attempt = attempt })
	}
	held := func(attempt, percent int) jobevent.ListedAttempt {
		return jobevent.ListedAttempt{JobID: job.JobID, Attempt: attempt, Progress: &jobevent.Progress{Percent: percent, Message: "so far"}}
	}
	h.see(t, heartbeat("w1", 12, 12), heartbeat("w1", 12, 2), heartbeat("w2", 8, 8, held(1, 10)), heartbeat("old", 5, 0))
	if got := h.ReadJob(t, job.JobID); got.Progress != nil {
		t.Error("progress of a job that is not known to run")
	}
	h.Exec(t, "update workers set seen_at = now() - interval '11 s' where worker_id = 'old'")
	h.Apply(t, running(1))
	if got := h.ReadJob(t, job.JobID); got.Progress == nil || got.Progress.Percent != 10 {
		t.Errorf("progress that came before the scheduler's status: %+v", got.Progress)
	}
	h.see(t, heartbeat("w2", 8, 7, held(1, 40)))
	if got := h.ReadJob(t, job.JobID); got.Progress == nil || got.Progress.Percent != 40 || got.Progress.Message != "so far" {
		t.Errorf("progress %+v", got.Progress)
	}
	before := apidbtest.One[string](t, h, "select xmin::text from jobs")
	h.see(t, heartbeat("w2", 8, 7, held(1, 40)))
	if after := apidbtest.One[string](t, h, "select xmin::text from jobs"); after != before {
		t.Error("the same progress was written again")
	}
	figures, err := h.Stats.Health(t.Context())
	if err != nil || figures.ActiveThreads != 11 || figures.PoolSize != 20 || figures.PendingJobs != 0 {
		t.Errorf("figures %+v, %v", figures, err)
	}
	h.Apply(t, running(2))
	if got := h.ReadJob(t, job.JobID); got.Progress != nil {
		t.Error("the next attempt has the progress of the one before")
	}
	h.see(t, heartbeat("w2", 8, 7, held(1, 90)))
	h.Apply(t, apidbtest.Status(job.JobID, 9, jobstate.Failed, func(s *jobevent.Status) { s.Attempt = 2 }))
	h.see(t, heartbeat("w2", 8, 7, held(2, 90), held(3, 90)))
	if n := apidbtest.One[int](t, h, "select count(*) from jobs where progress is not null"); n != 0 {
		t.Error("an old attempt's progress is kept, or that of a job that has ended")
	}
	stopping := heartbeat("w1", 12, 12)
	stopping.Stopping = true
	h.see(t, heartbeat("w1", 12, 2), stopping)
	if n := apidbtest.One[int](t, h, "select count(*) from workers where worker_id = 'w1'"); n != 0 {
		t.Error("a worker that stops is still there")
	}
	h.Exec(t, "update workers set seen_at = now() - interval '2 hours' where worker_id = 'old'")
	if err := h.Workers.DeleteOld(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := apidbtest.One[int](t, h, "select count(*) from workers"); n != 1 {
		t.Errorf("%d workers are known", n)
	}
}
