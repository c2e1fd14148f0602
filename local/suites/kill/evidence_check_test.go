package kill

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/local/suites/kill/witness"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

var began = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }

// truth returns evidence of one job that failed at its second attempt, after the first was lost with its worker.
func truth() (*evidence, *shown, *order) {
	id := uuid.Must(uuid.NewV7()).String()
	s := &shape{name: "fails", ends: one(failed), code: "TEST.FAILED", redrive: true}
	o := &order{key: "k1", id: id, shape: s, accepted: at(0)}
	job := &shown{JobID: id, Status: failed, Attempt: 2, Tags: []string{"k1"}}
	job.LastError = &struct{ ErrorCode, Message string }{"TEST.FAILED", ""}
	job.move("", "QUEUED", 1)
	job.move("QUEUED", "PENDING", 1)
	job.move("PENDING", "QUEUED", 2)
	job.move("QUEUED", failed, 2)
	verdict := at(4)
	job.Attempts = []shownAttempt{
		{Attempt: 1, WorkerID: "w1", Outcome: "lost", FinishedAt: &verdict}, {Attempt: 2, WorkerID: "w2", Outcome: "failed"},
	}
	e := &evidence{
		chaos: &chaos{}, orders: map[string]*order{"k1": o}, jobs: map[string]*shown{id: job},
		processes: map[string]string{"w1": "runjob-1#1", "w2": "runjob-1#2"},
		lives: map[string]life{
			"runjob-1#1": {name: "runjob-1#1", began: at(0), ended: at(3)},
			"runjob-1#2": {name: "runjob-1#2", began: at(4)},
		},
		ran: map[string][]run{id: {
			{job: id, attempt: 1, key: "k1", process: "runjob-1#1", start: at(1)},
			{job: id, attempt: 2, key: "k1", process: "runjob-1#2", start: at(5), end: at(6), how: witness.Failed},
		}},
		dead: map[string]int{jobevent.DeadLetterID(uuid.MustParse(id), 2): 3},
	}
	return e, job, o
}

func (s *shown) move(from, to string, attempt int) {
	s.History = append(s.History, shownMove{At: at(len(s.History)), From: from, To: to, Attempt: attempt, By: "test"})
}

func TestTheChecksFindEachViolation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lie  func(e *evidence, job *shown, o *order)
		find string // in one of the findings; empty: there must be none
	}{
		"nothing": {func(*evidence, *shown, *order) {}, ""},
		"an accepted job is gone": {
			func(e *evidence, job *shown, _ *order) { delete(e.jobs, job.JobID) }, "and is not there",
		},
		"a job is there twice": {func(e *evidence, job *shown, _ *order) {
			twin := *job
			twin.JobID = uuid.NewString()
			e.jobs[twin.JobID] = &twin
		}, "is there as 2 jobs"},
		"a job that was not submitted": {
			func(e *evidence, _ *shown, _ *order) { delete(e.orders, "k1") }, "this job was not submitted",
		},
		"a run that was not submitted": {func(e *evidence, _ *shown, _ *order) {
			e.ran["other"] = []run{{job: "other", attempt: 1, key: "k7", start: at(1)}}
		}, "was not submitted so"},
		"a job has not ended":  {func(_ *evidence, job *shown, _ *order) { job.Status = "RUNNING" }, "has not ended"},
		"a job ends otherwise": {func(_ *evidence, job *shown, _ *order) { job.Status = completed }, "a job that fails is COMPLETED"},
		"a job ends twice":     {func(_ *evidence, job *shown, _ *order) { job.move(failed, completed, 2) }, `moves from "FAILED" to COMPLETED`},
		"a history has a hole": {
			func(_ *evidence, job *shown, _ *order) { job.History = slices.Delete(job.History, 1, 2) }, "and was",
		},
		"an attempt is started twice": {func(e *evidence, job *shown, _ *order) {
			again := e.ran[job.JobID][1]
			again.process = "runjob-1#1"
			e.ran[job.JobID] = append(e.ran[job.JobID], again)
		}, "was started twice"},
		"two attempts at once": {func(e *evidence, job *shown, _ *order) {
			e.ran[job.JobID][0].end = at(9)
			e.lives["runjob-1#1"] = life{name: "runjob-1#1", began: at(0), ended: at(10)}
		}, "before the end of attempt 1"},
		"lost, and its worker lived": {func(_ *evidence, job *shown, _ *order) {
			verdict := at(2)
			job.Attempts[0].FinishedAt = &verdict
		}, "was called lost, and"},
		"completed, and it was not": {
			func(_ *evidence, job *shown, _ *order) { job.Attempts[1].Outcome = "completed" }, `is completed, its handler ended with "failed"`,
		},
		"failed, and it never started": {func(e *evidence, job *shown, _ *order) {
			e.ran[job.JobID] = e.ran[job.JobID][:1]
		}, "never started"},
		"an attempt that the API does not know": {
			func(_ *evidence, job *shown, _ *order) { job.Attempts = job.Attempts[:1] }, "the API knows of none",
		},
		"started after CANCELLED was shown": {
			func(_ *evidence, _ *shown, o *order) { o.cancelled = at(4) }, "after the API had shown CANCELLED",
		},
		"started before its time": {func(_ *evidence, job *shown, _ *order) {
			due := at(2)
			job.RunAt = &due
		}, "before its time"},
		"a command without an answer": {
			func(_ *evidence, _ *shown, o *order) { o.commands = []given{{"retry", 1, at(7)}} }, "has no answer",
		},
		"an attempt goes back behind a checkpoint": {func(e *evidence, job *shown, _ *order) {
			e.counts = map[string][]counted{job.JobID: {{1, 7, false}, {1, 8, false}, {2, 7, true}}}
		}, "attempt 2 began at 7, and attempt 1 had saved 8"},
		"no dead letter": {func(e *evidence, _ *shown, _ *order) { clear(e.dead) }, "has no dead letter"},
		"two dead letters": {func(e *evidence, job *shown, _ *order) {
			e.dead[jobevent.DeadLetterID(uuid.MustParse(job.JobID), 1)] = 1
		}, "has not failed then"},
		"a rejected record": {func(e *evidence, _ *shown, _ *order) { e.dead["rejected: {}"] = 1 }, "a record was rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, job, o := truth()
			c.lie(e, job, o)
			e.check()
			e.wants(t, c.find)
		})
	}
}

// wants checks the findings: one with a text, or none.
func (e *evidence) wants(t *testing.T, text string) {
	t.Helper()
	found := slices.ContainsFunc(e.findings, func(f finding) bool { return strings.Contains(f.text, text) })
	if text == "" && len(e.findings) > 0 || text != "" && !found {
		t.Errorf("found %v, want %q", e.findings, text)
	}
}
