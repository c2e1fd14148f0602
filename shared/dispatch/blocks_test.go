package dispatch

import (
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func TestABatchWithoutDependencyOrKeyAsksNothing(t *testing.T) {
	t.Parallel()
	if _, b := Ask(newJobs(3)); b != nil || b.By(uuid.New()) != "" {
		t.Errorf("%+v", b)
	}
}

func TestAJobWhosePredecessorIsMissingWaitsForTheTurn(t *testing.T) {
	t.Parallel()
	missing, job := uuid.New(), newJob()
	job.OrderingKey, job.OrderNumber, job.OrderAfter = "k", 2, &missing
	q, b := Ask([]jobevent.Created{job})
	if len(q.Predecessors) != 1 || q.Keys[0] != "k" {
		t.Errorf("asks %+v", q)
	}
	b.Decide([]jobevent.Created{job})
	if b.By(job.JobID) != ByOrder || len(b.Gaps) != 1 || b.Arrived[job.JobID] {
		t.Errorf("%+v", b)
	}
	_, b = Ask([]jobevent.Created{job})
	b.NoteArrived(missing)
	if b.Decide([]jobevent.Created{job}); b.By(job.JobID) != "" || len(b.Gaps) > 0 {
		t.Errorf("%+v", b)
	}
}

func TestAJobLinesUpBehindTheTurnAndEarlierJobs(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]Line{"the turn is taken": {HasTurn: true}, "an earlier one waits": {First: 1}} {
		job := newJob()
		job.OrderingKey, job.OrderNumber = "k", 2
		_, b := Ask([]jobevent.Created{job})
		b.NoteLine(OrderKey{Key: "k"}, line)
		if b.Decide([]jobevent.Created{job}); b.By(job.JobID) != ByOrder {
			t.Errorf("%s: blocked by %q", name, b.By(job.JobID))
		}
	}
}

func TestADependencyThatHasEnded(t *testing.T) {
	t.Parallel()
	before := uuid.New()
	for _, c := range []struct {
		status  jobstate.Status
		anyway  bool
		by      string
		tooLate int
	}{
		{jobstate.Completed, false, "", 0}, {jobstate.Failed, false, ByDependency, 1}, {jobstate.Failed, true, "", 0},
		{jobstate.Running, true, ByDependency, 0},
	} {
		job := newJob()
		job.After, job.RunAnyway = []uuid.UUID{before, before}, c.anyway
		_, b := Ask([]jobevent.Created{job})
		b.NoteEnd(before, c.status)
		b.Decide([]jobevent.Created{job})
		if b.By(job.JobID) != c.by || len(b.TooLate) != c.tooLate || c.by != "" && len(b.Dependencies[job.JobID]) != 1 {
			t.Errorf("%s, anyway %t: %+v", c.status, c.anyway, b)
		}
	}
}

func TestADependentIsReadyWhenItsLastDependencyHasCompleted(t *testing.T) {
	t.Parallel()
	by, two := ByDependency, int32(2)
	d := Dependent{JobID: uuid.New(), EndedAs: "COMPLETED", Status: "PENDING", BlockedBy: &by, WaitsFor: &two, Condition: "completed"}
	r := NewReleases()
	r.Add(d)
	if fewer, ready := r.Take(d); fewer != 1 || ready {
		t.Errorf("after one: %d, ready %t", fewer, ready)
	}
	r.Add(d)
	r.Add(d)
	if fewer, ready := r.Take(d); fewer != 2 || !ready {
		t.Errorf("after both: %d, ready %t", fewer, ready)
	}
	if fewer, _ := r.Take(d); fewer != 0 {
		t.Errorf("taken twice: %d", fewer)
	}
	d.EndedAs, d.Condition = "FAILED", "ended"
	if r.Add(d); len(r.Failed) != 0 {
		t.Error("a job that runs anyway fails")
	}
	d.Condition = "completed"
	r.Add(d)
	if fewer, ready := r.Take(d); fewer != 0 || ready || len(r.Failed) != 1 {
		t.Errorf("after a failure: %d, ready %t", fewer, ready)
	}
	d.JobID, d.WaitsFor = uuid.New(), nil
	if r.Add(d); len(r.Failed) != 1 {
		t.Error("a job that waits no more fails")
	}
}

func TestAStepReleasesUpToItsBoundAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	first, second := uuid.New(), uuid.New()
	l.NoteEnded(first, nil, nil)
	if ended := l.NextEnded(true, 10); ended != nil {
		t.Errorf("with no dependents %v", ended)
	}
	l.NoteDependencies(4)
	l.NoteEnded(first, nil, nil)
	if ended := l.NextEnded(true, 10); len(ended) != 1 || ended[0] != first {
		t.Fatalf("%v", ended)
	}
	l.NoteReleased(10, []uuid.UUID{first})
	l.NoteEnded(second, nil, nil)
	if ended := l.NextEnded(false, 0); ended != nil {
		t.Errorf("beyond the bound %v", ended)
	}
	if _, wake := l.Close(); !wake || len(l.unreleased) != 2 {
		t.Errorf("wake %t, unreleased %v", wake, l.unreleased)
	}
	if ended := l.NextEnded(true, 10); len(ended) != 2 {
		t.Errorf("in the next step %v", ended)
	}
}
