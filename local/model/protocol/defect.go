package protocol

// Defect is a mistake planted in the model: one rule of the protocol taken away.
type Defect uint8

// The defects.
const (
	Healthy                 Defect = iota
	NoAttemptGuard                 // an outcome is applied whatever its attempt
	NoClaimKey                     // a second run-job of an attempt is claimed as well
	NoReconcile                    // projection says nothing again
	StatusBeforeDeadLetter         // job-status is not the last event of its version
	SchedulerJudges                // watchdog gives an attempt up when its lease runs out, instead of asking
	SchedulerCancelsAlone          // a cancel of what is in flight is decided without the worker
	NoQuestion                     // watchdog never asks about an attempt
	NobodyJudges                   // no worker settles the attempts of a silent one
	LivingAreJudged                // a worker declares others lost after an outage in which none could beat
	StartsUnheard                  // a worker starts attempts before its next beat has got through
	SettleUnguarded                // a worker settles an attempt that somebody else has settled
	NoReread                       // a worker does not look for claims whose answer it never got
	LateAnswerCounts               // a worker takes the answer to a claim for true after it was silent
	CancelLeavesNoRow              // cancelling an unclaimed attempt settles nothing
	CancelForgotten                // an outcome is applied as if no cancel were asked for
	CommandOnlyInKafka             // a command is not kept
	CommandsNotNumbered            // a command is applied as often as it is heard
	RetryCountsAnew                // a retried job begins again at attempt 1
	AnswerRaisesNoVersion          // a command that changes nothing else leaves the version
	AnswerWithoutDeadLetter        // the answer to a command is a job-status alone
	AnyVersion                     // projection takes a lower version than it has
	LostCountsAsRetry              // a lost attempt counts as a failed one
	PublishBeforeCommit            // a worker says an outcome before it has settled it
	StatusNotHeldBack              // job-status is published beside the other events of its version
	EarlyCallbackCounts            // a failed callback is applied before the handler has returned
	CallbackOnlyInKafka            // a callback is not kept
	SchedulerGivesUp               // the scheduler gives a waiting attempt up by itself
	NoDeadline                     // nobody asks about an attempt that waits
	CancelByAnyWorker              // a worker settles another's running attempt as cancelled
	TombstoneWithoutEnd            // a tombstone deletes the API's row, whatever that shows
	DeletedIsForgotten             // ingest takes the job-created of a deleted job for that of a new one
	OldOutcomeAsksAgain            // an outcome that changes nothing is answered by its attempt's run-job

	lastDefect = OldOutcomeAsksAgain
)
