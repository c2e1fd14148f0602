package jobstate

import "fmt"

// Job is as much of a job as decides its next state.
type Job struct {
	Status          Status
	Attempt         int // rises by one at each dispatch
	RetryCount      int // rises only when an attempt failed
	MaxRetryCount   int
	LostCount       int  // attempts in a row that were lost with their workers
	CancelRequested bool // asked of the worker, not answered yet
	CommandSeq      int  // number of the last command applied
	Deleted         bool // what is left of an ended job keeps old events from bringing it back
}

// Kind says what became of an attempt.
type Kind string

// What can become of an attempt. Waiting is no end: a callback or its deadline ends it.
const (
	KindCompleted   Kind = "completed"
	KindWaiting     Kind = "waiting"
	KindFailed      Kind = "failed"
	KindLost        Kind = "lost"
	KindInterrupted Kind = "interrupted"
	KindCancelled   Kind = "cancelled"
	KindSnoozed     Kind = "snoozed"
)

// Outcome is what a worker says of an attempt, or an outside system that called back.
type Outcome struct {
	Attempt   int
	Kind      Kind
	Retryable bool // counts for KindFailed only
	Callback  bool // from an outside system: the attempt's handler may still run
}

// Dispatch sends the job's next attempt out. Only a Pending job moves.
func (j Job) Dispatch() (Job, bool) {
	if j.Status != Pending {
		return j, false
	}
	j.Status = Queued
	j.Attempt++
	return j, true
}

// Due makes a job that waited for its time Pending.
func (j Job) Due() (Job, bool) {
	if j.Status != Scheduled && j.Status != Retrying {
		return j, false
	}
	j.Status = Pending
	return j, true
}

// Start is a worker's word that the attempt's handler runs.
func (j Job) Start(attempt int) (Job, bool) {
	if j.Status != Queued || j.Attempt != attempt {
		return j, false
	}
	j.Status = Running
	return j, true
}

// SuspectFrom is the number of losses in a row from which a job is suspected of killing its workers. The index
// jobs_suspects and the statement JobsDue have the same number.
const SuspectFrom = 2

// Apply gives the job after an outcome; false when it changes nothing, because it is of an old
// attempt or the attempt has its outcome already. A job that is lost more than maxLost times in a row fails:
// one that kills its workers must not run for ever. After its first loss it is Pending at once; a suspect is
// Scheduled, so that suspects run apart from each other and one that kills its workers does so alone.
func (j Job) Apply(o Outcome, maxLost int) (Job, bool) {
	if !j.Status.InFlight() && j.Status != Waiting || j.Attempt != o.Attempt {
		return j, false
	}
	if o.Kind == KindWaiting && j.Status == Waiting || j.tooEarly(o) {
		return j, false
	}
	if j.CancelRequested && o.Kind != KindCompleted {
		j.Status, j.CancelRequested = Cancelled, false
		return j, true
	}
	j.CancelRequested = false
	if o.Kind != KindLost && o.Kind != KindInterrupted {
		j.LostCount = 0
	}
	switch o.Kind {
	case KindCompleted:
		j.Status = Completed
	case KindWaiting:
		j.Status = Waiting
	case KindCancelled:
		j.Status = Cancelled
	case KindInterrupted:
		j.Status = Pending
	case KindSnoozed:
		j.Status = Scheduled
	case KindLost:
		if j.LostCount >= maxLost {
			j.Status = Failed
			break
		}
		j.LostCount++
		j.Status = Pending
		if j.LostCount >= SuspectFrom {
			j.Status = Scheduled
		}
	case KindFailed:
		if o.Retryable && j.RetryCount < j.MaxRetryCount {
			j.Status = Retrying
			j.RetryCount++
		} else {
			j.Status = Failed
		}
	default:
		return j, false
	}
	return j, true
}

// tooEarly says whether a callback has to wait for the worker: the handler of its attempt may still run, and nothing
// that follows from its failure may meet it. The API says it again until the attempt is over.
func (j Job) tooEarly(o Outcome) bool {
	return o.Callback && o.Kind == KindFailed && j.Status.InFlight()
}

// Command is a numbered wish about a job.
type Command string

// The commands.
const (
	Cancel     Command = "cancel"
	Retry      Command = "retry"
	Reschedule Command = "reschedule" // to another time, which is not this package's business
	Delete     Command = "delete"
	Change     Command = "change" // of what is to hold for it, which is not this package's business
)

// Answer says what came of a command.
type Answer struct {
	Applied bool
	Reason  string
}

// Command gives the job after a command, and the answer to it; false when the command was answered
// before, so that however often it is said it counts once. That a job is deleted answers every command.
func (j Job) Command(number int, c Command) (Job, Answer, bool) {
	if number <= j.CommandSeq || j.Deleted {
		return j, Answer{}, false
	}
	j.CommandSeq = number
	var next Job
	var answer Answer
	switch c {
	case Cancel:
		next, answer = j.cancel()
	case Retry:
		next, answer = j.retry()
	case Reschedule:
		next, answer = j.reschedule()
	case Delete:
		next, answer = j.delete()
	case Change:
		next, answer = j.change()
	default:
		return j, Answer{Reason: fmt.Sprintf("unknown command %q", c)}, true
	}
	return next, answer, true
}

// GiveUp ends a job that no attempt has started yet, because it is too late for it or because one that it waited for
// did not complete.
func (j Job) GiveUp() (Job, bool) {
	switch j.Status {
	case Scheduled, Pending:
		j.Status = Cancelled
		return j, true
	case Queued, Running, Waiting, Retrying, Completed, Failed, Cancelled:
	}
	return j, false
}

func (j Job) reschedule() (Job, Answer) {
	switch j.Status {
	case Scheduled, Pending:
		j.Status = Scheduled
		return j, Answer{Applied: true}
	case Retrying:
		return j, Answer{Applied: true}
	case Queued, Running, Waiting, Completed, Failed, Cancelled:
	}
	return j, Answer{Reason: "the job is " + string(j.Status)}
}

// change is for a job that no attempt has been made of: what an attempt has seen does not change.
func (j Job) change() (Job, Answer) {
	switch j.Status {
	case Scheduled, Pending:
		if j.Attempt > 0 {
			return j, Answer{Reason: "the job has started before"}
		}
		return j, Answer{Applied: true}
	case Queued, Running, Waiting, Retrying, Completed, Failed, Cancelled:
	}
	return j, Answer{Reason: "the job is " + string(j.Status)}
}

func (j Job) delete() (Job, Answer) {
	if !j.Status.Terminal() {
		return j, Answer{Reason: "the job is " + string(j.Status)}
	}
	j.Deleted = true
	return j, Answer{Applied: true}
}

func (j Job) cancel() (Job, Answer) {
	switch j.Status {
	case Scheduled, Pending, Retrying, Waiting:
		j.Status = Cancelled
		return j, Answer{Applied: true}
	case Queued, Running:
		j.CancelRequested = true
		return j, Answer{Applied: true, Reason: "the worker was asked"}
	case Completed, Failed, Cancelled:
	}
	return j, Answer{Reason: "the job is " + string(j.Status)}
}

func (j Job) retry() (Job, Answer) {
	switch j.Status {
	case Failed, Cancelled:
		j.Status, j.RetryCount, j.LostCount = Pending, 0, 0
		return j, Answer{Applied: true}
	case Scheduled, Pending, Queued, Running, Waiting, Retrying, Completed:
	}
	return j, Answer{Reason: "the job is " + string(j.Status)}
}
