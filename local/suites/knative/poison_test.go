package knative

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/jobweaver/jobweaver/shared/eventkeys"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// poisons are event types; one invalid event of each is sent. An event that a Trigger delivers ends in the dead letter
// sink; an event on a topic is rejected by the worker.
var poisons = []string{
	jobevent.TypesCreated, jobevent.TypesRun, jobevent.TypesEnded, jobevent.TypesCommand, jobevent.TypesAttemptLogs,
	jobevent.TypesStatus, jobevent.TypeHeartbeat, jobevent.TypeControl, jobevent.TypeApplied,
}

// poison sends the invalid events: each becomes a dead letter, and delays no other event. ids are the ids of the
// events.
func poison(ctx context.Context, h *fixture, ids *[]string) error {
	missing := map[string]string{}
	path := filepath.Join(h.dir, "poison.keys")
	if err := os.WriteFile(path, []byte(h.eventKey), 0o600); err != nil {
		return err
	}
	keys, err := eventkeys.Open(path)
	if err != nil {
		return err
	}
	for _, typ := range poisons {
		e := event.New()
		e.SetID("poison." + uuid.NewString())
		e.SetType(typ)
		e.SetSource("/elsewhere")
		if typ == jobevent.TypesRun {
			e.SetExtension(jobevent.ExtQueue, jobevent.DefaultQueue)
		}
		signed := typ != jobevent.TypesEnded // that type is refused for its signature, the others for their data
		data, name := `{"jobId": 17`, e.ID()
		if jobevent.IsPacked(e) {
			data = `{"items": [17]}`
			if signed {
				name += "/0" // the item alone
			}
		}
		if err := e.SetData(event.ApplicationJSON, []byte(data)); err != nil {
			return err
		}
		if signed {
			keys.Sign([]event.Event{e})
		}
		missing[name] = typ
		*ids = append(*ids, e.ID())
		if err := h.sendToBroker(ctx, e); err != nil {
			return err
		}
	}
	return h.readDead(ctx, func(record *kgo.Record) bool {
		for _, header := range record.Headers {
			if header.Key == "ce_id" {
				delete(missing, string(header.Value))
			}
		}
		var rejected jobevent.Rejected
		if json.Unmarshal(record.Value, &rejected) == nil {
			delete(missing, rejected.Headers["ce_id"])
		}
		return len(missing) == 0
	}, missing)
}

func (h *fixture) sendToBroker(ctx context.Context, e event.Event) error {
	for {
		req, err := cehttp.NewHTTPRequestFromEvent(ctx, h.brokerURL(), e)
		if err != nil {
			return err
		}
		res, err := h.broker.client.Do(req)
		if err != nil {
			continue // a mishap
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusAccepted {
			return nil
		}
		if res.StatusCode != http.StatusServiceUnavailable {
			return fmt.Errorf("the broker answered %s", res.Status)
		}
	}
}

// readDead reads dead letters until seen returns true.
func (h *fixture) readDead(ctx context.Context, seen func(*kgo.Record) bool, missing map[string]string) error {
	kafka, err := kgo.NewClient(kgo.SeedBrokers(h.brokers...), kgo.ConsumeTopics(jobevent.TopicDeadLetter))
	if err != nil {
		return err
	}
	defer kafka.Close()
	for {
		fetched := kafka.PollFetches(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("never came to the dead letters: %v", missing)
		}
		done := false
		fetched.EachRecord(func(record *kgo.Record) { done = seen(record) || done })
		if done {
			return nil
		}
	}
}
