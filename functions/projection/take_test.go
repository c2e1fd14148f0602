package projection

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func BenchmarkTakeStatus(b *testing.B) {
	at := time.Now().UTC()
	id := uuid.Must(uuid.NewV7())
	history, err := json.Marshal([]jobevent.Transition{
		{At: at, To: "QUEUED", Attempt: 1, By: "ingest"},
		{At: at, From: "QUEUED", To: "COMPLETED", Attempt: 1, By: "outcome", Outcome: "completed", WorkerID: "a-worker",
			StartedAt: &at, FinishedAt: &at},
	})
	if err != nil {
		b.Fatal(err)
	}
	e, err := jobevent.New(jobevent.TypeStatus, jobevent.Meta{Function: "outcome", ID: jobevent.StatusID(id, 2), JobID: id, TraceID: id},
		jobevent.RawStatus{History: history, Status: jobevent.Status{
			JobID: id, Version: 2, Status: "COMPLETED", Attempt: 1, StartedAt: &at, FinishedAt: &at, UpdatedAt: at,
		}})
	if err != nil {
		b.Fatal(err)
	}
	batch := make([]jobevent.Item, 500)
	for i := range batch {
		batch[i] = e
	}
	b.ReportAllocs()
	for b.Loop() {
		var h contents
		for _, e := range batch {
			if err := h.take(e); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(batch)), "ns/event")
}
