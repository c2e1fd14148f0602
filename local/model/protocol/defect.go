package protocol

// Defect is a mistake planted in the model: it removes one rule of the protocol.
type Defect uint8

// The defects.
const (
	Healthy                 Defect = iota
	NoAttemptGuard                 // an outcome of any attempt is applied
	NoClaimKey                     // a second run-job of an attempt is claimed as well
	NoReconcile                    // projection republishes nothing
	StatusBeforeDeadLetter         // job-status is not the last event of its version
	SchedulerReaps                 // watchdog settles an attempt as lost when its lease runs out, instead of asking
	SchedulerCancelsAlone          // a cancel of an attempt in flight is decided without the worker
	NoQuestion                     // watchdog never asks about an attempt
	NoReaping                      // no worker settles the attempts of a silent one
	LiveAreReaped                  // a worker reaps live workers after an outage in which none could send heartbeats
	StartsWhileSilent              // a worker starts attempts before its next heartbeat has got through
	SettleUnguarded                // a worker settles an attempt that another one has settled
	NoReread                       // a worker does not look for claims whose answer was lost
	LateAnswerCounts               // a worker uses the answer to a claim after it was silent
	CancelLeavesNoRow              // cancelling an unclaimed attempt settles nothing
	CancelForgotten                // an outcome is applied as if no cancel were pending
	CommandOnlyInKafka             // a command is not stored
	CommandsNotNumbered            // a command is applied as often as it is consumed
	RetryCountsAnew                // a retried job begins again at attempt 1
	AnswerRaisesNoVersion          // a command that changes nothing else does not raise the version
	AnswerWithoutDeadLetter        // the answer to a command is only a job-status
	AnyVersion                     // projection applies a lower version than it has
	LostCountsAsRetry              // a lost attempt counts as a failed one
	PublishBeforeCommit            // a worker publishes an outcome before it has settled it
	StatusNotHeldBack              // job-status is published beside the other events of its version
	EarlyCallbackCounts            // a failed callback is applied before the handler has returned
	CallbackOnlyInKafka            // a callback is not stored
	SchedulerGivesUp               // the scheduler fails a waiting attempt by itself
	NoDeadline                     // no function asks about an attempt that waits
	CancelByAnyWorker              // a worker settles another's running attempt as cancelled
	TombstoneWithoutEnd            // a deletion deletes the API's row, whatever the row shows
	DeletedIsForgotten             // ingest treats the job-created of a deleted job as that of a new one
	OldOutcomeAsksAgain            // an outcome that changes nothing is answered by a run-job of its attempt
	StatusesUnflushed              // projection's commits do not wait for the disk, and PostgreSQL loses the last ones

	lastDefect = StatusesUnflushed
)
