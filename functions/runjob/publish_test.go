package runjob

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
)

// until waits for a condition on what the fixture has recorded.
func (h *fixture) until(what string, condition func() bool) {
	h.t.Helper()
	timedOut := false
	timer := time.AfterFunc(patience, func() { h.update(func() { timedOut = true }) })
	defer timer.Stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for !condition() {
		if timedOut {
			h.t.Fatalf("waited in vain until %s", what)
		}
		h.cond.Wait()
	}
}

func (h *fixture) untilStarted(runs ...jobevent.Run) {
	h.t.Helper()
	h.until("attempts have started", func() bool {
		return !slices.ContainsFunc(runs, func(r jobevent.Run) bool {
			return h.starts[jobevent.AttemptToken(r.JobID, r.Attempt)] == 0
		})
	})
}

// outcome waits until the outcome of an attempt is published.
func (h *fixture) outcome(run jobevent.Run) jobevent.Item {
	h.t.Helper()
	return h.outcomes(run, 1)[0]
}

func (h *fixture) outcomes(run jobevent.Run, n int) (found []jobevent.Item) {
	h.t.Helper()
	h.until("an outcome is published", func() bool {
		found = found[:0]
		prefix := jobevent.AttemptToken(run.JobID, run.Attempt) + "."
		for _, e := range h.published {
			switch e.Type() {
			case jobevent.TypeCompleted, jobevent.TypeFailed, jobevent.TypeWaiting:
				if len(e.ID()) > len(prefix) && e.ID()[:len(prefix)] == prefix {
					found = append(found, e)
				}
			}
		}
		return len(found) >= n
	})
	return found
}

func (h *fixture) failed(run jobevent.Run) jobevent.Failed {
	h.t.Helper()
	failed, err := jobevent.DecodeAs[jobevent.Failed](h.outcome(run), jobevent.TypeFailed)
	if err != nil {
		h.t.Fatal(err)
	}
	return failed
}

func (h *fixture) run(jobType, payload string) jobevent.Run {
	return jobevent.Run{
		JobID: uuid.Must(uuid.NewV7()), Attempt: 1, JobType: jobType, Payload: json.RawMessage(cmp.Or(payload, "{}")),
		Spec: jobevent.Spec{TimeoutMs: 600_000}, Rank: time.Now(),
	}
}

func (h *fixture) event(run jobevent.Run, partition int32) jobevent.Item {
	h.t.Helper()
	e, err := jobevent.New(jobevent.TypeRun, jobevent.Meta{
		Function: "dispatch", ID: jobevent.RunID(run.JobID, run.Attempt), JobID: run.JobID,
		Key: jobevent.RoutingKey(partition), TraceID: uuid.New(), Queue: h.queue,
	}, run)
	if err != nil {
		h.t.Fatal(err)
	}
	return e
}

// order publishes run orders to the partitions in turn.
func (h *fixture) order(runs ...jobevent.Run) {
	h.t.Helper()
	events := make([]jobevent.Item, len(runs))
	for i, run := range runs {
		events[i] = h.event(run, int32(i%jobevent.RunPartitions))
	}
	h.send(eventsOf(events...)...)
}

func eventsOf(items ...jobevent.Item) []event.Event {
	events := make([]event.Event, len(items))
	for i, it := range items {
		events[i] = it.Alone()
	}
	return events
}

func (h *fixture) send(events ...event.Event) {
	h.t.Helper()
	if err := h.producer.Publish(h.t.Context(), events); err != nil {
		h.t.Fatal(err)
	}
}

func (h *fixture) wantCancel(run jobevent.Run) {
	h.t.Helper()
	h.send(h.cancel(run).Alone())
}

func (h *fixture) cancel(run jobevent.Run) jobevent.Item {
	h.t.Helper()
	e, err := jobevent.New(jobevent.TypeAttemptCancel, jobevent.Meta{
		Function: "command", ID: jobevent.AttemptCancelID(run.JobID, run.Attempt), JobID: run.JobID, TraceID: uuid.New(),
	}, jobevent.AttemptCancel{JobID: run.JobID, Attempt: run.Attempt})
	if err != nil {
		h.t.Fatal(err)
	}
	return e
}

func (h *fixture) startsOf(run jobevent.Run) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.starts[jobevent.AttemptToken(run.JobID, run.Attempt)]
}

// untilCommitted waits until the group has committed n records of the queue's topic.
func (h *fixture) untilCommitted(n int64) {
	h.t.Helper()
	client, err := sarama.NewClient(h.kafka.Brokers, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = admin.Close() }()
	for deadline := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		offsets, err := admin.ListConsumerGroupOffsets("jobweaver-runjob-"+h.queue, nil)
		if err != nil && !errors.Is(err, sarama.ErrGroupIDNotFound) { // it has not joined yet
			h.t.Fatal(err)
		}
		var committed int64
		if err == nil {
			for _, block := range offsets.Blocks[jobevent.RunTopic(h.queue)] {
				committed += max(block.Offset, 0)
			}
		}
		if committed == n {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("%d records committed, want %d", committed, n)
		}
	}
}

const noop = `{"steps": [{"type": "LOG", "message": "hi"}]}`

// leaks checks at the test's end that a worker has left no goroutine.
func leaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before, kafkatest.IgnoreSarama()) })
}
