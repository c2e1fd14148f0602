package protocol

import (
	"slices"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// job is the scheduler's row: a packed jobstate.Job with its version. Its transitions are those of jobstate; defects
// are planted around them.
type job struct {
	status                                   uint8 // its index in names; 0: no row
	attempt, retries, lost, command, version uint8
	cancel, deleted                          bool
}

var names = append([]jobstate.Status{""}, jobstate.All()...)

func (j job) name() jobstate.Status { return names[j.status] }

// shown returns the row as the API shows it.
func (j job) shown() shown {
	switch j.name() {
	case jobstate.Completed:
		return shownCompleted
	case jobstate.Failed:
		return shownFailed
	case jobstate.Cancelled:
		return shownCancelled
	case jobstate.Queued, jobstate.Running:
		return shownInFlight
	case jobstate.Waiting:
		return shownWaiting
	case jobstate.Scheduled, jobstate.Pending, jobstate.Retrying:
	}
	return shownOpen
}

// move makes a new version of the row, if there is a row and f changes it.
func (m *model) move(j *job, f func(jobstate.Job) (jobstate.Job, bool)) bool {
	if j.status == 0 {
		return false
	}
	to, ok := f(jobstate.Job{
		Status: j.name(), Attempt: int(j.attempt), CancelRequested: j.cancel, CommandSeq: int(j.command),
		RetryCount: int(j.retries), MaxRetryCount: int(m.limits.Retries), LostCount: int(j.lost),
		Deleted: j.deleted,
	})
	if ok {
		*j = j.moved(to)
	}
	return ok
}

func (j job) moved(to jobstate.Job) job {
	return job{
		status: uint8(slices.Index(names, to.Status)), attempt: uint8(to.Attempt), retries: uint8(to.RetryCount),
		lost: uint8(to.LostCount), cancel: to.CancelRequested, command: uint8(to.CommandSeq), deleted: to.Deleted,
		version: j.version + 1,
	}
}

// insert inserts the row of a new job: Queued if there is room, Pending if not, Failed if ingest cannot use it.
func (j *job) insert(as jobstate.Status) {
	first := jobstate.Job{Status: as}
	if as == jobstate.Queued {
		first, _ = jobstate.Job{Status: jobstate.Pending}.Dispatch()
	}
	*j = job{}.moved(first)
}

// dispatch dispatches the next attempt; a Retrying job has become due.
func (m *model) dispatch(j *job) bool {
	return m.move(j, func(now jobstate.Job) (jobstate.Job, bool) {
		now, _ = now.Due()
		to, ok := now.Dispatch()
		if to.Attempt >= attempts {
			panic("a state has no room for another attempt")
		}
		return to, ok
	})
}

// run applies a heartbeat that lists the attempt as running.
func (m *model) run(j *job) bool {
	return m.move(j, func(now jobstate.Job) (jobstate.Job, bool) { return now.Start(now.Attempt) })
}

// callBack applies the API's decision on a callback or its deadline. A failed callback changes nothing while the
// handler may run; the API republishes it until the attempt has ended.
func (m *model) callBack(j *job, attempt uint8, o outcome) {
	m.apply(j, jobstate.Outcome{
		Attempt: int(attempt), Kind: kinds[o], Retryable: true, Callback: m.defect != EarlyCallbackCounts,
	})
}

// retire deletes a job that ended long ago.
func (m *model) retire(j *job) bool {
	return m.move(j, func(now jobstate.Job) (jobstate.Job, bool) {
		if !now.Status.Terminal() || now.Deleted {
			return now, false
		}
		now.Deleted = true
		return now, true
	})
}

// conclude applies an outcome of an attempt.
func (m *model) conclude(j *job, attempt uint8, o outcome) {
	m.apply(j, jobstate.Outcome{Attempt: int(attempt), Kind: kinds[o], Retryable: true})
}

func (m *model) apply(j *job, o jobstate.Outcome) {
	m.move(j, func(now jobstate.Job) (jobstate.Job, bool) {
		switch {
		case m.defect == NoAttemptGuard:
			o.Attempt = now.Attempt
		case m.defect == LostCountsAsRetry && o.Kind == jobstate.KindLost:
			o.Kind = jobstate.KindFailed
		case m.defect == CancelForgotten:
			now.CancelRequested = false
		}
		return now.Apply(o, int(m.limits.Lost))
	})
}

// obey applies a command.
func (m *model) obey(j *job, number uint8, c jobstate.Command) {
	was := *j
	m.move(j, func(now jobstate.Job) (jobstate.Job, bool) {
		if m.defect == CommandsNotNumbered {
			now.CommandSeq = int(number) - 1
		}
		to, _, ok := now.Command(int(number), c)
		switch {
		case m.defect == SchedulerCancelsAlone && to.CancelRequested:
			to.Status, to.CancelRequested = jobstate.Cancelled, false
		case m.defect == RetryCountsAnew && to.Status == jobstate.Pending:
			to.Attempt = 0
		}
		return to, ok
	})
	if m.defect == AnswerRaisesNoVersion && was.status == j.status && was.cancel == j.cancel {
		j.version = was.version
	}
}
