package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func newFunction(t *testing.T) *Function {
	t.Helper()
	store, err := schedulerdb.Open(context.Background(), pgtest.As(pgtest.Database(t, migrations.Scheduler), Name),
		schedulerdb.Config{Lease: 15 * time.Second, MaxLost: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return New(store)
}

// createdEvent is a job-created event of a new job, with data made of the job's and the given fields.
func createdEvent(t *testing.T, change map[string]any) jobevent.Item {
	t.Helper()
	id := uuid.Must(uuid.NewV7())
	data := map[string]any{
		"jobId": id, "traceId": uuid.New(), "jobType": "SIMULATION", "queue": "default", "payload": 1,
		"spec": jobevent.Spec{MaxRetryCount: 3, TimeoutMs: 1000}, "createdAt": time.Now(),
	}
	for name, value := range change {
		data[name] = value
	}
	e, err := jobevent.New(jobevent.TypeCreated,
		jobevent.Meta{Function: "test", ID: jobevent.CreatedID(id), JobID: id}, data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func typesOf(events []jobevent.Item) string {
	var types []string
	for _, e := range events {
		types = append(types, e.Type())
	}
	text, _ := json.Marshal(types)
	return string(text)
}

func TestAnAcceptedJobThatCannotBeUsedIsStoredAsFailed(t *testing.T) {
	t.Parallel()
	f := newFunction(t)
	for name, change := range map[string]map[string]any{
		"a field of the wrong kind":   {"spec": map[string]any{"priority": "high", "timeoutMs": 1}},
		"a number beyond its column":  {"spec": jobevent.Spec{TimeoutMs: 1<<32 + 1000}},
		"an id that is none":          {"jobId": "x"},
		"no id":                       {"jobId": uuid.Nil},
		"NUL in a name":               {"jobType": "A\x00"},
		"an instant before history":   {"createdAt": "0000-01-01T00:00:00Z"},
		"a queue that names no topic": {"queue": "A B"},
	} {
		t.Run(name, func(t *testing.T) {
			bad, good := createdEvent(t, change), createdEvent(t, nil)
			if _, err := f.Handle(t.Context(), []jobevent.Item{good, bad}); !errors.Is(err, jobevent.ErrInvalid) {
				t.Fatalf("in a batch: %v", err)
			}
			for range 2 {
				events, err := f.Handle(t.Context(), []jobevent.Item{bad})
				if err != nil || typesOf(events) != `["`+jobevent.TypeDeadLettered+`","`+jobevent.TypeStatus+`"]` {
					t.Fatalf("alone it returned %s, %v", typesOf(events), err)
				}
				if status, _ := jobevent.Decode[jobevent.Status](events[1]); status.Status != "FAILED" || events[1].Subject() != bad.Subject() {
					t.Errorf("%+v", status)
				}
			}
			if events, err := f.Handle(t.Context(), []jobevent.Item{good}); err != nil || typesOf(events) == "" {
				t.Errorf("the good one returned %s, %v", typesOf(events), err)
			}
		})
	}
}

func TestAnEventThatNamesNoJobIsRejected(t *testing.T) {
	t.Parallel()
	f := newFunction(t)
	for name, change := range map[string]func(*event.Event){
		"of another type":    func(e *event.Event) { e.SetType(jobevent.TypeCompleted) },
		"without a subject":  func(e *event.Event) { e.SetSubject(""); e.DataEncoded = []byte(`{`) },
		"about the zero job": func(e *event.Event) { e.SetSubject(uuid.Nil.String()); e.DataEncoded = nil },
	} {
		e := createdEvent(t, nil).Alone()
		change(&e)
		if events, err := f.Handle(t.Context(), []jobevent.Item{jobevent.ItemOf(e)}); !errors.Is(err, jobevent.ErrInvalid) {
			t.Errorf("an event %s returned %v, %v", name, events, err)
		}
	}
}

// Later jobs of the ordering key must wait for the jobs before the unusable one.
func TestAJobThatCannotBeUsedKeepsItsPlaceInAnOrder(t *testing.T) {
	t.Parallel()
	f := newFunction(t)
	first := createdEvent(t, map[string]any{"orderingKey": "k", "orderNumber": 10})
	unusable := createdEvent(t, map[string]any{
		"orderingKey": "k", "orderNumber": 11, "orderAfter": first.Subject(), "spec": "high",
	})
	last := createdEvent(t, map[string]any{"orderingKey": "k", "orderNumber": 12, "orderAfter": unusable.Subject()})
	for _, step := range []struct {
		event jobevent.Item
		runs  string // the job whose attempt is dispatched
	}{{unusable, ""}, {last, ""}, {first, first.Subject()}} {
		events, err := f.Handle(t.Context(), []jobevent.Item{step.event})
		if err != nil {
			t.Fatal(err)
		}
		runs := ""
		for _, e := range events {
			if e.Type() == jobevent.TypeRun {
				runs += e.Subject()
			}
		}
		if runs != step.runs {
			t.Fatalf("after %s goes out %q, want %q", step.event.Subject(), runs, step.runs)
		}
	}
}
