package jobevent

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cloudevents/sdk-go/v2/event"
)

// ErrInvalid marks an event that can never be handled, because of bad data or an impossible value. Handlers and
// stores wrap it; the host then rejects the event instead of trying it again.
var ErrInvalid = errors.New("invalid event")

// The types of events with one item.
const (
	TypeSubmit       = "io.jobweaver.job.submit.v1"
	TypeDeadLettered = "io.jobweaver.job.deadlettered.v1"
	TypeRejected     = "io.jobweaver.record.rejected.v1"
	TypeStatus       = "io.jobweaver.job.status.v1"
	TypeDeleted      = "io.jobweaver.job.deleted.v1" // has no data: on Kafka it is the tombstone of the job's statuses
	TypeControl      = "io.jobweaver.control.set.v1"
	TypeApplied      = "io.jobweaver.control.applied.v1"
	TypeHeartbeat    = "io.jobweaver.worker.heartbeat.v1"
)

// The types of items that are transported together, see packedAs.
const (
	TypeCreated       = "io.jobweaver.job.created.v1"
	TypeRun           = "io.jobweaver.job.run.v1"
	TypeCompleted     = "io.jobweaver.job.completed.v1"
	TypeFailed        = "io.jobweaver.job.failed.v1"
	TypeWaiting       = "io.jobweaver.job.waiting.v1"
	TypeCommand       = "io.jobweaver.job.command.v1"
	TypeAttemptCancel = "io.jobweaver.attempt.cancel.v1"
	TypeAttemptLog    = "io.jobweaver.attempt.log.v1"
)

// The types of events with many items. The data is {"items": […]}. An item has its own data, together with the values
// of its attributes. Only a status is nested: its JSON is stored, and has to be that of TypeStatus.
const (
	TypesCreated        = "io.jobweaver.jobs.created.v1"
	TypesRun            = "io.jobweaver.attempts.run.v1"
	TypesEnded          = "io.jobweaver.attempts.ended.v1" // completed, failed and waiting
	TypesCommand        = "io.jobweaver.jobs.command.v1"
	TypesAttemptCancels = "io.jobweaver.attempts.cancel.v1"
	TypesAttemptLogs    = "io.jobweaver.attempts.log.v1"
	TypesStatus         = "io.jobweaver.jobs.status.v1" // and deletions, for projection; see ForFunctions
)

// packedAs maps the type of an item to the type of the event that contains it and others.
var packedAs = map[string]string{
	TypeCreated:       TypesCreated,
	TypeRun:           TypesRun,
	TypeCompleted:     TypesEnded,
	TypeFailed:        TypesEnded,
	TypeWaiting:       TypesEnded,
	TypeCommand:       TypesCommand,
	TypeAttemptCancel: TypesAttemptCancels,
	TypeAttemptLog:    TypesAttemptLogs,
	TypesStatus:       TypesStatus,
}

// topicOfType lacks TypesRun, whose topic depends on the queue.
var topicOfType = map[string]string{
	TypeDeadLettered: TopicDeadLetter,
	TypeRejected:     TopicDeadLetter,
	TypeStatus:       TopicStatus,
	TypeDeleted:      TopicStatus,
	TypeControl:      TopicCommand,
	TypeApplied:      TopicControlApplied,
	TypeHeartbeat:    TopicHeartbeat,

	TypesCreated:        TopicCreated,
	TypesEnded:          TopicEnded,
	TypesCommand:        TopicCommand,
	TypesAttemptCancels: TopicAttemptCancel,
	TypesAttemptLogs:    TopicAttemptLog,
	TypesStatus:         TopicStatuses,
}

// Types returns the types of all events between functions, sorted.
func Types() []string {
	types := slices.AppendSeq([]string{TypesRun}, maps.Keys(topicOfType))
	slices.Sort(types)
	return types
}

// TopicOf returns the topic of an event, by its type or, for a run event, by its queue.
func TopicOf(e event.Event) (string, error) {
	return topicOf(e.Type(), Extension(e, ExtQueue))
}

// Topic returns the topic of the event that transports the item.
func (it Item) Topic() (string, error) {
	if it.packed != nil {
		return topicOf(it.packed.Type(), it.queue)
	}
	return topicOf(cmp.Or(packedAs[it.typ], it.typ), it.queue)
}

func topicOf(typ, queue string) (string, error) {
	if typ == TypesRun {
		return RunTopic(queue), nil
	}
	topic, ok := topicOfType[typ]
	if !ok {
		return "", fmt.Errorf("find topic of event type %q: %w", typ, ErrInvalid)
	}
	return topic, nil
}
