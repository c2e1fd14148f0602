package outcome

import (
	"errors"
	"fmt"
	"strings"
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

func TestOddOutcomesAreRejectedOrDoNoHarm(t *testing.T) {
	t.Parallel()
	store, err := schedulerdb.Open(t.Context(), pgtest.Database(t, migrations.Scheduler),
		schedulerdb.Config{Lease: 15 * time.Second, MaxLost: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	f := New(store)
	const (
		invalid   = "invalid"
		completed = jobevent.TypeCompleted
		failed    = jobevent.TypeFailed
		waiting   = jobevent.TypeWaiting
	)
	for name, c := range map[string]struct{ typ, fields, want string }{
		"completed":                    {completed, `"attempt": 1`, "COMPLETED"},
		"completed, with all it has":   {completed, `"attempt": 1, "startedAt": "2026-01-01T00:00:00Z", "output": [1]`, "COMPLETED"},
		"completed long ago":           {completed, `"attempt": 1, "finishedAt": "0000-01-01T00:00:00Z"`, invalid},
		"completed an attempt of text": {completed, `"attempt": "1"`, invalid},
		"completed an older attempt":   {completed, `"attempt": 0`, "QUEUED"},
		"completed a fraction":         {completed, `"attempt": 0.5`, invalid},
		"completed 2^32 later":         {completed, `"attempt": 4294967297`, "QUEUED"},
		"failed":                       {failed, `"attempt": 1, "kind": "failed", "errorCode": "A", "retryable": true`, "RETRYING"},
		"failed for good":              {failed, `"attempt": 1, "kind": "failed", "errorCode": "A"`, "FAILED"},
		"failed without a code":        {failed, `"attempt": 1, "kind": "failed"`, invalid},
		"failed as completed":          {failed, `"attempt": 1, "kind": "completed"`, invalid},
		"failed as nothing":            {failed, `"attempt": 1`, invalid},
		"failed with a NUL":            {failed, `"attempt": 1, "kind": "failed", "errorCode": "A\u0000", "message": "\u0000"`, "FAILED"},
		"a retry in the last of years": {failed, `"attempt": 1, "kind": "failed", "errorCode": "A", "retryable": true, "retryAfterMs": 9223372036854775807`, "RETRYING"},
		"a retry in the past":          {failed, `"attempt": 1, "kind": "failed", "errorCode": "A", "retryable": true, "retryAfterMs": -9223372036854775808`, "RETRYING"},
		"snoozed for ever":             {failed, `"attempt": 1, "kind": "snoozed", "retryAfterMs": 9223372036854775807`, "SCHEDULED"},
		"waiting":                      {waiting, `"attempt": 1, "callbackTimeoutMs": 1000`, "WAITING"},
		"waiting for ever":             {waiting, `"attempt": 1, "callbackTimeoutMs": 9223372036854775807`, "WAITING"},
		"waiting into the past":        {waiting, `"attempt": 1, "callbackTimeoutMs": -9223372036854775808`, "WAITING"},
		"of no job":                    {jobevent.TypeCompleted, `"jobId": null, "nonsense": 1`, invalid},
		"no outcome at all":            {jobevent.TypeRun, `"attempt": 1`, invalid},
	} {
		t.Run(name, func(t *testing.T) {
			id := uuid.Must(uuid.NewV7())
			if _, err := store.Ingest(t.Context(), []jobevent.Created{{
				JobID: id, JobType: "A", Queue: "default", Payload: []byte(`1`), Spec: jobevent.Spec{MaxRetryCount: 1, TimeoutMs: 1},
			}}); err != nil {
				t.Fatal(err)
			}
			// Make room for the next job.
			defer func() {
				_, err := store.Settle(t.Context(), []schedulerdb.Outcome{{JobID: id, Attempt: 1, Kind: "completed"}})
				if err != nil {
					t.Error(err)
				}
			}()
			e := event.New()
			e.SetType(c.typ)
			e.SetSubject(id.String())
			e.DataEncoded = fmt.Appendf(nil, `{"jobId": %q, "workerId": "w", %s}`, id, c.fields)
			if strings.Contains(c.fields, "jobId") {
				e.DataEncoded = fmt.Appendf(nil, `{%s}`, c.fields)
			}
			events, err := f.Handle(t.Context(), []jobevent.Item{jobevent.ItemOf(e)})
			if c.want == invalid {
				if !errors.Is(err, jobevent.ErrInvalid) {
					t.Errorf("returned %v, %v", events, err)
				}
				return
			}
			if err != nil || len(events) == 0 {
				t.Fatalf("returned %v, %v", events, err)
			}
			last := events[len(events)-1]
			if status, _ := jobevent.Decode[jobevent.Status](last); last.Type() != jobevent.TypeStatus || status.Status != c.want {
				t.Errorf("returned %v", events)
			}
		})
	}
}
