package jobstate

import "fmt"

// Job has the values that decide the next state of a job.
type Job struct {
	Status          Status
	Attempt         int // rises by one at each dispatch
	RetryCount      int // rises only when an attempt failed
	MaxRetryCount   int
	LostCount       int  // attempts in a row that were lost with their workers
	CancelRequested bool // the worker has been asked and has not answered
	CommandSeq      int  // number of the last command applied
	Deleted         bool // the row that remains keeps old events from bringing the job back
	FanOut          bool // no worker runs it: it waits until the API reports what became of the jobs of its elements
}

// Kind is the kind of an outcome.
type Kind string

// The kinds. Waiting ends no attempt: a callback or its deadline does.
const (
	KindCompleted   Kind = "completed"
	KindWaiting     Kind = "waiting"
	KindFailed      Kind = "failed"
	KindLost        Kind = "lost"
	KindInterrupted Kind = "interrupted"
	KindCancelled   Kind = "cancelled"
	KindSnoozed     Kind = "snoozed"
)

// Outcome is the outcome of an attempt, as a worker or an outside system has reported it.
type Outcome struct {
	Attempt   int
	Kind      Kind
	Retryable bool // counts for KindFailed only
	Callback  bool // from an outside system: the attempt's handler may still run
}

// Dispatch returns the job after its next attempt was dispatched; false if it is not Pending. Only the model and tests
// call it: in production the statements JobsDispatch and JobsInsert make this transition.
func (j Job) Dispatch() (Job, bool) {
	if j.Status != Pending {
		return j, false
	}
	j.Status = Queued
	j.Attempt++
	return j, true
}

// Due returns the job after the time that it waited for has come. Only the model and tests call it: in production the
// statement JobsDue makes this transition.
func (j Job) Due() (Job, bool) {
	if j.Status != Scheduled && j.Status != Retrying {
		return j, false
	}
	j.Status = Pending
	return j, true
}

// Start returns the job after a heartbeat listed its attempt as running. Only the model and tests call it: in
// production the statement JobsStarted makes this transition.
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

// Apply returns the job after an outcome; false if the outcome changes nothing, because it is of an old attempt or the
// attempt has one already. A job that is lost more than maxLost times in a row fails: a job that kills its workers must
// not run for ever. After its first loss it is Pending at once. A suspect is Scheduled, so that suspects run apart from
// each other and a job that kills its workers does so alone.
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

// tooEarly reports whether a callback must wait for the worker: the handler of its attempt may still run, and must not
// meet the next attempt. The API publishes the callback again until the attempt is over.
func (j Job) tooEarly(o Outcome) bool {
	return o.Callback && o.Kind == KindFailed && j.Status.InFlight()
}

// Command is a kind of command about a job.
type Command string

// The commands.
const (
	Cancel     Command = "cancel"
	Retry      Command = "retry"
	Reschedule Command = "reschedule" // to another instant, which this package does not see
	Wake       Command = "wake"       // a reschedule that follows from the waits of a handler
	Delete     Command = "delete"
	Change     Command = "change" // of properties that this package does not see
)

// Answer is the answer to a command.
type Answer struct {
	Applied bool
	Reason  string
}

// Command returns the job after a command, and the answer; false if the command was answered before, so that a repeated
// command counts once. Every command about a deleted job counts as answered.
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
	case Wake:
		next, answer = j.wake()
	case Delete:
		next, answer = j.delete()
	case Change:
		next, answer = j.change()
	default:
		return j, Answer{Reason: fmt.Sprintf("unknown command %q", c)}, true
	}
	return next, answer, true
}

// GiveUp cancels a job that waits, because it has expired or because a job that it waited for did not complete.
func (j Job) GiveUp() (Job, bool) {
	switch j.Status {
	case Scheduled, Pending:
		j.Status = Cancelled
		return j, true
	case Waiting:
		if j.FanOut {
			j.Status = Cancelled
		}
		return j, j.FanOut
	case Queued, Running, Retrying, Completed, Failed, Cancelled:
	}
	return j, false
}

// FailWithoutWorker fails a job for which no worker has come that runs its type.
func (j Job) FailWithoutWorker() (Job, bool) {
	if j.Status != Pending {
		return j, false
	}
	j.Status = Failed
	return j, true
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

// wake refuses a job that was woken before, and runs or has failed since: its retry keeps its delay.
func (j Job) wake() (Job, Answer) {
	if j.Status != Scheduled {
		return j, Answer{Reason: "the job is " + string(j.Status)}
	}
	return j.reschedule()
}

// change applies before the first attempt only: what an attempt has read does not change.
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
		if j.FanOut {
			j.Status = Waiting
			j.Attempt++ // the API has reported on the one before
		}
		return j, Answer{Applied: true}
	case Scheduled, Pending, Queued, Running, Waiting, Retrying, Completed:
	}
	return j, Answer{Reason: "the job is " + string(j.Status)}
}
