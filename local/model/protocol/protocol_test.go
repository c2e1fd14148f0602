package protocol

import (
	"strings"
	"testing"
)

// walks cover the protocol together: what one of them bounds is unbounded in another.
var walks = map[string]Limits{
	"a retry and a command, any kills and freezes": {
		Retries: 1, Budget: Budget{Commands: 1, Kills: Any, Freezes: Any},
	},
	"a lost worker and a command, any kills and freezes": {
		Lost: 1, Budget: Budget{Commands: 1, Kills: Any, Freezes: Any},
	},
	"a retry, a lost worker and a command, three kills": { // each further kill needs an attempt for which a state has no room
		Retries: 1, Lost: 1, Budget: Budget{Commands: 1, Kills: 3},
	},
	"a retry, a lost worker and an attempt handed back, any kills and freezes": {
		Retries: 1, Lost: 1, Budget: Budget{Kills: Any, Freezes: Any, Stops: 1},
	},
	"two commands, any kills and freezes": {
		Budget: Budget{Commands: 2, Kills: Any, Freezes: Any},
	},
	"three commands, any kills": {
		Budget: Budget{Commands: 3, Kills: Any},
	},
	"two attempts that wait, two callbacks, any kills": {
		Retries: 1, Lost: 1, Budget: Budget{Waits: 2, Callbacks: 2, Kills: Any},
	},
	"an attempt that waits, a callback, any kills and freezes": {
		Retries: 1, Budget: Budget{Waits: 1, Callbacks: 1, Kills: Any, Freezes: Any},
	},
	"an attempt that waits, a callback and a command, any kills": {
		Retries: 1, Budget: Budget{Commands: 1, Waits: 1, Callbacks: 1, Kills: Any},
	},
	"an attempt that waits, a callback, and a publish cut short or a wipe": {
		Retries: 1, Budget: Budget{Waits: 1, Callbacks: 1, Kills: 1, Losses: 1},
	},
	"two deletions and a command, any kills": {
		Retries: 1, Budget: Budget{Commands: 1, Deletes: 2, Kills: Any},
	},
	"an attempt that waits, a callback and a deletion": {
		Retries: 1, Budget: Budget{Deletes: 1, Waits: 1, Callbacks: 1, Kills: 1, Losses: 1},
	},
	"a command, a worker killed, one frozen, and twice a publish cut short or a wipe": {
		Budget: Budget{Commands: 1, Kills: 1, Freezes: 1, Losses: 2},
	},
}

func TestTheProtocolKeepsItsPromises(t *testing.T) {
	if testing.Short() {
		t.Skip("each walk is one goroutine: there is nothing to race")
	}
	for name, limits := range walks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			walked := Walk(limits, Healthy)
			t.Logf("%d states, %d steps, shown as %v", walked.States, walked.Steps, walked.Shown)
			if walked.Finding != nil {
				t.Fatalf("broken: %s\n%s", walked.Finding.Promise, strings.Join(walked.Finding.Trace, "\n"))
			}
			for end := shownCompleted; end <= shownFailed; end++ {
				if walked.Shown[end] == 0 {
					t.Errorf("no job was ever shown to end as %d: the walk is too small", end)
				}
			}
		})
	}
}

func TestEveryPlantedDefectIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("each walk is one goroutine: there is nothing to race")
	}
	var (
		quiet    = Limits{Retries: 1, Lost: 1}
		command  = Limits{Retries: 1, Lost: 1, Budget: Budget{Commands: 1}}
		kill     = Limits{Retries: 1, Lost: 1, Budget: Budget{Kills: 1}}
		freeze   = Limits{Retries: 1, Lost: 1, Budget: Budget{Freezes: 1}}
		commands = Limits{Budget: Budget{Commands: 2}}
		waits    = Limits{Retries: 1, Budget: Budget{Waits: 1, Callbacks: 1}}
		deletion = Limits{Retries: 1, Budget: Budget{Deletes: 1}}
		freezing = Limits{Retries: 1, Lost: 1, Budget: Budget{Commands: 1, Freezes: 1}}
	)
	found := map[Defect]bool{}
	for _, c := range []struct {
		name    string
		defect  Defect
		with    Limits // just enough to find it
		promise promise
	}{
		{"no attempt guard", NoAttemptGuard, quiet, oldAreOld},
		{"no claim key", NoClaimKey, quiet, oneStart},
		{"no reconcile", NoReconcile, quiet, jobsEnd},
		{"job-status before the dead letter", StatusBeforeDeadLetter, quiet, deadLetterFirst},
		{"the scheduler settles attempts as lost instead of asking", SchedulerReaps, quiet, workersDecide},
		{"the scheduler cancels an attempt in flight by itself", SchedulerCancelsAlone, command, workersDecide},
		{"no function asks about an attempt", NoQuestion, quiet, jobsEnd},
		{"no worker settles the attempts of a dead one", NoReaping, kill, jobsEnd},
		{"workers reap each other after an outage", LiveAreReaped, quiet, livingKeep},
		{"a worker starts attempts while it is silent", StartsWhileSilent, freezing, cancelledForGood},
		{"a late outcome overwrites an earlier one", SettleUnguarded, quiet, notOverruled},
		{"a claim without an answer is forgotten", NoReread, quiet, jobsEnd},
		{"a claim's answer counts after a silence", LateAnswerCounts, freeze, livingKeep},
		{"cancelling an unclaimed attempt leaves no row", CancelLeavesNoRow, command, workersDecide},
		{"an outcome forgets the cancel", CancelForgotten, command, cancelsCount},
		{"a command is only in Kafka", CommandOnlyInKafka, command, jobsEnd},
		{"commands have no number", CommandsNotNumbered, command, commandsOnce},
		{"a retry begins again at attempt 1", RetryCountsAnew, command, ownNumbers},
		{"an answer raises no version", AnswerRaisesNoVersion, command, jobsEnd},
		{"an answer is only a job-status", AnswerWithoutDeadLetter, command, deadLetterFirst},
		{"projection applies any version", AnyVersion, quiet, endsStay},
		{"a lost attempt counts as a retry", LostCountsAsRetry, kill, countsAreRight},
		{"an outcome is published before its commit", PublishBeforeCommit, kill, workersDecide},
		{"job-status is published beside a dead letter", StatusNotHeldBack, quiet, deadLetterFirst},
		{"a failed callback counts while the handler runs", EarlyCallbackCounts, waits, workersDecide},
		{"a callback is only in Kafka", CallbackOnlyInKafka, waits, callbacksCount},
		{"the scheduler fails a waiting attempt", SchedulerGivesUp, waits, workersDecide},
		{"no function asks about a waiting attempt", NoDeadline, waits, jobsEnd},
		{"a worker settles an attempt that another one runs", CancelByAnyWorker, commands, oneHandler},
		{"a deletion is applied without the end", TombstoneWithoutEnd, deletion, endsAreShown},
		{"a deleted job is forgotten at once", DeletedIsForgotten, deletion, deletedForGood},
		{"an old outcome is answered by a run-job", OldOutcomeAsksAgain, quiet, circlesEnd},
		{"projection's commits do not wait for the disk", StatusesUnflushed, quiet, endsStay},
	} {
		found[c.defect] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			walked := Walk(c.with, c.defect)
			if walked.Finding == nil {
				t.Fatalf("not found in %d states", walked.States)
			}
			t.Logf("%s:\n%s", walked.Finding.Promise, strings.Join(walked.Finding.Trace, "\n"))
			if walked.Finding.Promise != string(c.promise) {
				t.Errorf("found another broken promise: %s", walked.Finding.Promise)
			}
		})
	}
	for d := Healthy + 1; d <= lastDefect; d++ {
		if !found[d] {
			t.Errorf("no walk looks for defect %d", d)
		}
	}
}
