package jobstate

import (
	"slices"
	"testing"
)

// diagram is the picture of the states in docs/design.md.
var diagram = map[Status][]Status{
	Scheduled: {Pending, Cancelled},
	Pending:   {Queued, Cancelled, Scheduled},
	Queued:    {Running, Completed, Waiting, Pending, Retrying, Failed, Cancelled, Scheduled},
	Running:   {Completed, Waiting, Pending, Retrying, Failed, Cancelled, Scheduled},
	Waiting:   {Completed, Pending, Retrying, Failed, Cancelled, Scheduled},
	Retrying:  {Pending, Cancelled},
	Completed: {},
	Failed:    {Pending},
	Cancelled: {Pending},
}

func everyJob(yield func(Job)) {
	for _, status := range All() {
		for retries := range 3 {
			for lost := range 3 {
				for _, asked := range []bool{false, status.InFlight()} {
					yield(Job{Status: status, Attempt: 2, RetryCount: retries, MaxRetryCount: 2, LostCount: lost, CancelRequested: asked, CommandSeq: 1})
				}
			}
		}
	}
}

func everyMove(j Job, yield func(next Job, ok bool)) {
	yield(j.Dispatch())
	yield(j.Due())
	yield(j.Start(2))
	for _, kind := range []Kind{KindCompleted, KindWaiting, KindFailed, KindLost, KindInterrupted, KindCancelled, KindSnoozed} {
		for _, retryable := range []bool{false, true} {
			yield(j.Apply(Outcome{Attempt: 2, Kind: kind, Retryable: retryable}, 2))
		}
	}
	yield(j.GiveUp())
	for _, c := range []Command{Cancel, Retry, Reschedule, Wake, Delete, Change} {
		next, _, ok := j.Command(2, c)
		yield(next, ok)
	}
}

func TestMovesStayOnTheDiagram(t *testing.T) {
	t.Parallel()
	used := map[[2]Status]bool{}
	everyJob(func(j Job) {
		everyMove(j, func(next Job, ok bool) {
			used[[2]Status{j.Status, next.Status}] = true
			switch {
			case !ok && next != j:
				t.Errorf("%+v became %+v by a transition that reports no change", j, next)
			case next.Status != j.Status && !slices.Contains(diagram[j.Status], next.Status):
				t.Errorf("%s moved to %s", j.Status, next.Status)
			case next.CancelRequested && !next.Status.InFlight():
				t.Errorf("%+v became %+v: a cancel that no worker can answer", j, next)
			case next.RetryCount > next.MaxRetryCount:
				t.Errorf("%+v became %+v: too many retries", j, next)
			}
		})
	})
	for from, tos := range diagram {
		for _, to := range tos {
			if !used[[2]Status{from, to}] {
				t.Errorf("no move leads from %s to %s", from, to)
			}
		}
	}
}

// Otherwise the next attempt could run beside the handler.
func TestAFailedCallbackChangesNothingWhileTheHandlerMayRun(t *testing.T) {
	t.Parallel()
	everyJob(func(j Job) {
		for _, retryable := range []bool{false, true} {
			o := Outcome{Attempt: 2, Kind: KindFailed, Retryable: retryable, Callback: true}
			next, ok := j.Apply(o, 2)
			if j.Status.InFlight() && ok {
				t.Errorf("a callback made %+v of %+v", next, j)
			}
			o.Callback = false
			if same, _ := j.Apply(o, 2); !j.Status.InFlight() && same != next {
				t.Errorf("a callback made %+v of %+v, and a worker %+v", next, j, same)
			}
		}
	})
}

// Attempts that end otherwise show that the job does not kill its worker.
func TestOnlyLossesInARowMakeASuspect(t *testing.T) {
	t.Parallel()
	lose := func(j Job) Job {
		j.Status = Running
		next, _ := j.Apply(Outcome{Attempt: j.Attempt, Kind: KindLost}, 3)
		return next
	}
	once := lose(Job{Attempt: 1})
	if once.Status != Pending || once.LostCount != 1 {
		t.Errorf("the first loss made %+v", once)
	}
	twice := lose(once)
	if twice.Status != Scheduled || twice.LostCount != SuspectFrom {
		t.Errorf("the second loss in a row made %+v", twice)
	}
	for kind, want := range map[Kind]int{
		KindInterrupted: 2, KindSnoozed: 0, KindWaiting: 0, KindFailed: 0,
	} {
		j := twice
		j.Status, j.MaxRetryCount = Running, 1
		next, _ := j.Apply(Outcome{Attempt: 1, Kind: kind, Retryable: true}, 3)
		if next.LostCount != want {
			t.Errorf("after two losses %s left the count at %d, not %d", kind, next.LostCount, want)
		}
	}
	if last := lose(lose(twice)); last.Status != Failed {
		t.Errorf("the fourth loss in a row made %+v", last)
	}
}

func TestAnOldAttemptOrAnOldCommandChangesNothing(t *testing.T) {
	t.Parallel()
	everyJob(func(j Job) {
		for _, attempt := range []int{0, 1, 3} {
			if next, ok := j.Apply(Outcome{Attempt: attempt, Kind: KindCompleted}, 2); ok || next != j {
				t.Errorf("outcome of attempt %d made %+v of %+v", attempt, next, j)
			}
		}
		for _, c := range []Command{Cancel, Retry, Reschedule, Wake, Delete, Change} {
			if next, _, ok := j.Command(1, c); ok || next != j {
				t.Errorf("an old %s made %+v of %+v", c, next, j)
			}
		}
	})
}

func TestADeletedJobStaysAsItIs(t *testing.T) {
	t.Parallel()
	everyJob(func(j Job) {
		next, answer, _ := j.Command(2, Delete)
		if next.Deleted != j.Status.Terminal() || answer.Applied != next.Deleted {
			t.Errorf("delete made %+v of %+v: %+v", next, j, answer)
		}
		if !next.Deleted {
			return
		}
		for _, c := range []Command{Cancel, Retry, Reschedule, Wake, Delete, Change} {
			if last, _, ok := next.Command(3, c); ok || last != next {
				t.Errorf("%s made %+v of %+v", c, last, next)
			}
		}
	})
}

func TestACompletedAttemptIsNeverOverruledByACancel(t *testing.T) {
	t.Parallel()
	j := Job{Status: Running, Attempt: 1, CancelRequested: true}
	if next, _ := j.Apply(Outcome{Attempt: 1, Kind: KindCompleted}, 0); next.Status != Completed {
		t.Errorf("became %s", next.Status)
	}
}

func TestOnlyAJobThatHasNotStartedIsChanged(t *testing.T) {
	t.Parallel()
	for _, status := range All() {
		for attempt := range 2 {
			j := Job{Status: status, Attempt: attempt, CommandSeq: 1}
			next, answer, isNew := j.Command(2, Change)
			j.CommandSeq = 2
			if want := attempt == 0 && (status == Scheduled || status == Pending); answer.Applied != want || !isNew || next != j {
				t.Errorf("%+v became %+v: %+v", j, next, answer)
			}
		}
	}
}
