package apidb_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The reasons for which a statement need not filter by owner.
const (
	forAll  = "functions use it for all owners, and answer no request with it"
	asked   = "of what a statement with the owner in it has found for the same request"
	locked  = "under the lock of a row that was found by its owner, in the same transaction"
	secret  = "its request knows the attempt's secret, which is its right"
	own     = "it is about keys themselves, before it is known whose a request is, or the installation's admin's"
	shared  = "it reads rows without an owner: queues, workers, types or the whole installation; the gateway filters them by owner"
	restore = "an operator uses it for all owners, and answers no request with it"
	none    = "it touches no row of an owner"
)

// ownerless are the statements without an owner in them.
var ownerless = map[string]string{
	"LogInsertMany": forAll, "CallbacksLock": forAll, "CallbacksGiveUp": forAll, "CallbacksOf": forAll, "CallbacksAnswer": forAll,
	"CallbacksUnconfirmed": forAll, "WebhooksForget": forAll, "CommandsUnconfirmed": forAll, "JobsApplyStatus": forAll,
	"CommandsAnswered": forAll, "JobsDelete": forAll, "JobsProgress": forAll, "JobsUnconfirmed": forAll, "JobsInFlight": forAll,
	"JobsWaiting": forAll, "JobsExpire": forAll, "LogsExpire": forAll, "JobsDeleted": none, "DeletedForget": forAll,
	"DeliveryOwners": forAll, "DeliveryNext": forAll, "DeliverySettle": forAll, "DeliveryRelease": forAll,
	"DeliveriesForget": forAll, "OperationsForget": forAll, "OperationsUnfinished": forAll, "OperationLock": forAll,
	"OperationUnanswered": forAll, "OperationAwaitsRetries": forAll, "OperationAnswersTake": forAll, "OperationListed": forAll, "OperationAdvance": forAll,
	"OperationSkipsAdd": forAll, "TicksRecord": forAll, "ScheduleJobsNotEnded": forAll, "TicksForget": forAll,
	"SchedulesDue": forAll, "SchedulesFired": forAll, "ScheduleNext": forAll, "ScheduleHeads": forAll, "ScheduleCancelsKeep": forAll,
	"ScheduleCancelsOpen": forAll, "ScheduleCancelsDrop": forAll, "ControlsApplied": forAll,
	"ControlsUnconfirmed": forAll, "TallyTakeEntries": forAll, "TallyTakeOld": forAll, "TallyForget": forAll, "JobsCountPage": forAll,
	"KeysCountPage": forAll, "HeldReplace": "of rows that HeldJobs has locked", "HeldRelease": forAll, "HeldNext": forAll, "HeldCommands": forAll,

	"OwnersKnown": "only for callers that see all owners", "JobCountsPut": forAll, "TalliesKept": forAll, "WorkerSeeMany": forAll, "WorkerRemoveMany": forAll, "WorkersForget": forAll,
	"DrainsForget": forAll, "FailureTakeEntries": forAll, "FailuresForget": forAll,
	"QueuesForget": forAll, "QueuesEnding": forAll, "QueueRemoved": forAll, "QueueWasFilled": forAll, "QueueHasJobs": forAll,
	"QueueJobs": "only for callers that see all owners", "QueueNamed": "only for callers that see all owners",
	"QueuesAll": shared, "QueueByName": shared, "QueuesCount": shared, "QueueCreate": shared, "QueueKeep": shared,
	"QueueRemoving": shared, "QueuesClosed": shared,

	"RejectedInsert": forAll, "RejectedTrim": forAll, "RejectedForget": forAll,
	"RejectedList": "only for callers that see all owners", "RejectedGet": "only for callers that see all owners",
	"RejectedHold": "only for callers that see all owners", "RejectedRedriven": "only for callers that see all owners",
	"RejectedDiscard": "only for callers that see all owners",
	"BatchExpire":     forAll, "BatchesDue": forAll, "BatchLock": forAll, "BatchLive": forAll, "BatchEnd": forAll, "BatchesExpire": forAll,
	"BatchCounts": asked, "FlowStates": asked, "BatchesEnded": asked, "BatchesList": "only for callers that see all owners",
	"FlowRetry": locked, "FlowRetryLeft": locked, "FlowJobs": locked, "FlowOthers": locked,
	"FlowJobsLock": locked, "FlowRequests": locked, "FlowRunAgain": locked, "JobsReplaced": locked,
	"FanOutsLive": forAll, "FanOutTry": none, "FanOutRead": forAll, "FanOutParents": forAll, "BatchUnfinished": forAll, "FanOutExpanded": forAll,
	"FanOutEnds": forAll, "FanOutOutputs": forAll, "FanOutCounts": asked, "FanOutOrphans": forAll, "FanOutOrphansOf": forAll,
	"BatchReopen": locked, "BatchDelay": locked, "BatchHold": none, "BatchesShare": none, "BatchesChanged": none,
	"LogsEnd": asked, "LogsAfter": asked, "ChangesNotify": forAll, "WatchersAnnounce": forAll, "JobsUnblocked": forAll, "JobsNaming": forAll, "JobsWithPayload": forAll,
	"OperationSkips": asked, "JobsEnded": asked, "JobsMissingStatus": forAll, "JobsForgetStatuses": forAll, "OperationsEnded": asked, "JobsBlocks": asked, "TicksList": asked,
	"OperationsList": "only for callers that see all owners",
	"CommandOfJob":   locked, "CommandKeep": locked, "CallbacksInTheWay": locked, "CommandsOfJobs": locked,
	"AlertReplace": locked, "AlertPause": locked, "AlertDelete": locked, "AlertLock": locked, "AlertsPage": forAll, "AlertSeal": locked,
	"AlertMove": locked, "AlertNoticeInsert": locked, "AlertNoticesForget": locked, "AlertNoticesList": asked,
	"ScheduleReplace": locked, "ScheduleLock": locked, "ScheduleBegin": locked, "SchedulePause": locked, "ScheduleDelete": locked,
	"ScheduleSeal": locked, "CallbackLock": secret, "CallbackBefore": secret, "CallbackKeep": secret, "CallbackProgress": secret,
	"WebhookSeen": secret,
	"KeysByID":    own, "KeyEnsure": own, "KeysAll": own, "KeyRetire": own, "KeysUsed": own,
	"ControlLock": shared, "ControlByName": shared, "ControlsCount": shared, "ControlPut": shared, "ControlsAll": shared,
	"JobFigures": shared, "JobCounts": shared, "WorkerFigures": shared, "WorkersAll": shared, "WorkerIsKnown": shared,
	"RestoredJobs": restore, "RestoredUntil": restore, "RestoredStatuses": restore, "RestoredAccepted": restore,
	"RestoredForgetStatuses": restore, "RestoredInsert": restore, "RestoredNumbers": restore, "RestoredControlVersion": restore, "RestoredSequences": restore,
	"RestoredControlsApplied": restore, "RestoredControlTake": restore, "RestoredControlLift": restore, "RestoredQueues": restore,
	"AuditList": "only for callers that see all owners", "AuditForget": forAll,
	"WaitsLock": locked, "WaitsOfJob": asked, "WaitsChildEnds": asked, "EventsNumbered": asked, "WaitsToLookAt": forAll, "WaitsNextLook": forAll,
	"WaitsLooked": locked, "EventsExpire": forAll, "WaitsLockTypes": none, "WaitsLockTypesShared": none,
	"StepKeep": locked, "StepsOfJob": asked,
	"Now": none, "OrdersLock": none, "OperationsWake": none, "SchedulesChanged": none, "TallyLock": none,
	"AwaitReplicas": none,
	"TagsOf":        "of the jobs whose attempts pull has handed to the request, by its owner",
}

var (
	statements = regexp.MustCompile(`(?m)^-- name: (\w+) :\w+$`)
	ownerIn    = regexp.MustCompile(`@(owners?|owner_ids?|everyone)\b|narg\('(owner|owner_id)'\)`)
)

// Each statement filters by owner or has a reason why not, so that the author of a new statement must decide.
func TestEachStatementFiltersByOwnerOrStatesWhyNot(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("sql/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		at := statements.FindAllSubmatchIndex(text, -1)
		for i, place := range at {
			end := len(text)
			if i+1 < len(at) {
				end = at[i+1][0]
			}
			name, body := string(text[place[2]:place[3]]), text[place[1]:end]
			seen[name] = true
			switch why := ownerless[name]; {
			case ownerIn.Match(body) && why != "":
				t.Errorf("%s: %s has an owner in it, and stands among those that have none", file, name)
			case !ownerIn.Match(body) && why == "":
				t.Errorf("%s: %s has no owner in it; say why", file, name)
			}
		}
	}
	for name := range ownerless {
		if !seen[name] {
			t.Errorf("there is no statement %s", name)
		}
	}
}
