package dispatch

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// place counts the arrivals by the state in which they begin.
func place(l *Ledger, r *Room, jobs ...jobevent.Created) (map[jobstate.Status]int, Delta) {
	arrivals, delta := Place(jobs, nil, l, r)
	states := map[jobstate.Status]int{}
	for _, a := range arrivals {
		states[a.Status]++
	}
	return states, delta
}

func TestNewJobsGoOutAsFarAsThereIsRoom(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	states, delta := place(l, newRoom(l, 3), newJobs(5)...)
	if states[jobstate.Queued] != 3 || states[jobstate.Pending] != 2 {
		t.Errorf("%v", states)
	}
	l.Enter(delta)
	if n := l.out.ofQueue("default"); n != 3 || !l.HasReady("default") {
		t.Errorf("%d out", n)
	}
	if states, _ = place(l, newRoom(l, 9), newJobs(2)...); states[jobstate.Pending] != 2 {
		t.Errorf("before a job that waits: %v", states)
	}
}

func TestOfNewJobsTheBestRankGoesFirst(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	jobs := newJobs(3)
	jobs[1].CreatedAt = l.At.Add(-75 * time.Second)
	jobs[2].Priority = 1
	arrivals, _ := Place(jobs, nil, l, newRoom(l, 1))
	for i, want := range []int{1, 2, 0} {
		if arrivals[i].JobID != jobs[want].JobID {
			t.Errorf("in place %d is another job than %d", i, want)
		}
	}
	if arrivals[0].Status != jobstate.Queued || *arrivals[0].Partition != 3 {
		t.Errorf("the best is %s", arrivals[0].Status)
	}
}

func TestAJobThatIsDueLaterIsScheduled(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	job, expires := newJob(), newJob()
	later, soon := l.At.Add(time.Hour), l.At.Add(time.Minute)
	job.RunAt, expires.RunAt, expires.ExpiresAt = &later, &later, &soon
	states, delta := place(l, newRoom(l, 9), job, expires)
	if states[jobstate.Scheduled] != 2 || !delta.DueFloor().Equal(soon) {
		t.Errorf("%v, due %s", states, delta.DueFloor())
	}
}

func TestNewJobsKeepToLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]jobevent.Control{
		"a queue": atMost("queue", "default", 2), "a type": atMost("type", "A", 2), "an owner": atMost("owner", "acme", 2),
		"a rate": aSecond("type", "A", 40),
	} {
		l := newLedger(t, c)
		r := newRoom(l, 9)
		jobs := newJobs(5)
		for i := range jobs {
			jobs[i].OwnerID = "acme"
		}
		states, delta := place(l, r, jobs...)
		if l.Enter(delta); states[jobstate.Queued] != 2 || states[jobstate.Pending] != 3 {
			t.Errorf("%s: %v", name, states)
		}
		if left := len(r.Take("default", 9)); left != 7 {
			t.Errorf("%s: room for %d is left", name, left)
		}
	}
}

func TestABlockedJobTakesNoRoom(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	first, second, after := newJob(), newJob(), newJob()
	first.OrderingKey, first.OrderNumber, second.OrderingKey, second.OrderNumber = "k", 1, "k", 2
	second.OrderAfter, after.After = &first.JobID, []uuid.UUID{first.JobID}
	jobs := []jobevent.Created{after, second, first}
	_, b := Ask(jobs)
	b.Decide(jobs)
	if b.By(first.JobID) != "" || b.By(second.JobID) != ByOrder || b.By(after.JobID) != ByDependency {
		t.Errorf("blocked by %q, %q, %q", b.By(first.JobID), b.By(second.JobID), b.By(after.JobID))
	}
	arrivals, delta := Place(jobs, b, l, newRoom(l, 1))
	for _, a := range arrivals {
		if want := a.JobID == first.JobID; (a.Status == jobstate.Queued) != want {
			t.Errorf("a job blocked by %q is %s", b.By(a.JobID), a.Status)
		}
	}
	if len(delta.floors) > 0 {
		t.Error("a blocked job waits for room")
	}
}
