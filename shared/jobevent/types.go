package jobevent

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cloudevents/sdk-go/v2/event"
)

// ErrInvalid marks an event that can never be handled, because of bad data or an impossible value. Handlers and
// stores wrap it; the host then rejects the event instead of trying it again.
var ErrInvalid = errors.New("invalid event")

// The event types.
const (
	TypeSubmit        = "io.jobweaver.job.submit.v1"
	TypeCreated       = "io.jobweaver.job.created.v1"
	TypeRun           = "io.jobweaver.job.run.v1"
	TypeCompleted     = "io.jobweaver.job.completed.v1"
	TypeFailed        = "io.jobweaver.job.failed.v1"
	TypeWaiting       = "io.jobweaver.job.waiting.v1"
	TypeDeadLettered  = "io.jobweaver.job.deadlettered.v1"
	TypeRejected      = "io.jobweaver.record.rejected.v1"
	TypeStatus        = "io.jobweaver.job.status.v1"
	TypeDeleted       = "io.jobweaver.job.deleted.v1" // has no data: on Kafka it is the tombstone of the job's statuses
	TypeCommand       = "io.jobweaver.job.command.v1"
	TypeControl       = "io.jobweaver.control.set.v1"
	TypeApplied       = "io.jobweaver.control.applied.v1"
	TypeAttemptCancel = "io.jobweaver.attempt.cancel.v1"
	TypeAttemptLog    = "io.jobweaver.attempt.log.v1"
	TypeHeartbeat     = "io.jobweaver.worker.heartbeat.v1"
)

var topicOfType = map[string]string{
	TypeCreated:       TopicCreated,
	TypeCompleted:     TopicCompleted,
	TypeFailed:        TopicFailed,
	TypeWaiting:       TopicWaiting,
	TypeDeadLettered:  TopicDeadLetter,
	TypeRejected:      TopicDeadLetter,
	TypeStatus:        TopicStatus,
	TypeDeleted:       TopicStatus,
	TypeCommand:       TopicCommand,
	TypeControl:       TopicCommand,
	TypeApplied:       TopicControlApplied,
	TypeAttemptCancel: TopicAttemptCancel,
	TypeAttemptLog:    TopicAttemptLog,
	TypeHeartbeat:     TopicHeartbeat,

	TypesCreated:        TopicCreated,
	TypesEnded:          TopicCompleted,
	TypesCommand:        TopicCommand,
	TypesAttemptCancels: TopicAttemptCancel,
	TypesAttemptLogs:    TopicAttemptLog,
	TypesStatus:         TopicStatus,
}

// Types returns the types of all events between functions, sorted.
func Types() []string {
	types := slices.AppendSeq([]string{TypeRun, TypesRun}, maps.Keys(topicOfType))
	slices.Sort(types)
	return types
}

// TopicOf returns the topic of an event, by its type or, for a run event, by its queue.
func TopicOf(e event.Event) (string, error) {
	return topicOf(e.Type(), Extension(e, ExtQueue))
}

// Topic returns the topic of its event of version 1.
func (it Item) Topic() (string, error) { return topicOf(it.typ, it.queue) }

func topicOf(typ, queue string) (string, error) {
	if typ == TypeRun || typ == TypesRun {
		return RunTopic(queue), nil
	}
	topic, ok := topicOfType[typ]
	if !ok {
		return "", fmt.Errorf("find topic of event type %q: %w", typ, ErrInvalid)
	}
	return topic, nil
}
