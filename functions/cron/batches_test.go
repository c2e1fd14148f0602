package cron_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/batchstore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// batch stores a closed batch without jobs. Its follow-up job is sealed as a gateway seals it.
func (h *fixture) batch(by *sealing.Sealer) uuid.UUID {
	h.t.Helper()
	id := h.store.NewID()
	job := json.RawMessage(`{"jobType": "OWN", "payload": {"canary": {"$batch": "summary"}}}`)
	made, err := h.store.Batches.Create(h.t.Context(), nil, batchstore.NewBatch{ID: id, Request: apibody.Batch{
		Closed: true, OnComplete: batchstore.Seal(by, id, "onComplete", job),
	}})
	if err != nil {
		h.t.Fatal(err)
	}
	return made.ID
}

func TestAClosedBatchWakesTheClockAndItsFollowingJobIsPublishedSealed(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, own := newKeys(t)
	_, foreign := newKeys(t)
	published := make(chan jobevent.Item, 10)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, h.sealedBy(own), func(_ context.Context, events []jobevent.Item) error {
			for _, e := range events {
				published <- e
			}
			return nil
		})
	}()
	closed := h.batch(newSealer(t, foreign)) // this process cannot open it
	sealer := newSealer(t, own)
	id := h.batch(sealer)
	var created jobevent.Created
	select {
	case e := <-published:
		var err error
		if created, err = jobevent.DecodeAs[jobevent.Created](e, jobevent.TypeCreated); err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no job was published")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	plain, err := sealer.Open(sealing.OfJob(created.JobID, sealing.Payload), created.Payload)
	if err != nil || !strings.Contains(string(plain), id.String()) || strings.Contains(string(created.Payload), "canary") {
		t.Errorf("the payload is %s, opened %s, %v", created.Payload, plain, err)
	}
	for of, status := range map[uuid.UUID]batchstore.Status{id: batchstore.Completed, closed: batchstore.Running} {
		if got, err := h.store.Batches.Get(t.Context(), apidb.Everyone, of); err != nil || got.Status != status {
			t.Errorf("batch %s is %s, not %s, %v", of, got.Status, status, err)
		}
	}
}

func TestAnExpiredBatchHasItsJobsCancelledByAnOperation(t *testing.T) {
	t.Parallel()
	h := open(t)
	at := time.Now().Add(time.Hour)
	id := h.store.NewID()
	job := apidbtest.NewJob()
	job.Request.BatchID = id
	if _, err := h.store.Batches.Create(t.Context(), nil, batchstore.NewBatch{
		ID: id, Request: apibody.Batch{ExpiresAt: &at}, Jobs: []jobstore.NewJob{job},
	}); err != nil {
		t.Fatal(err)
	}
	h.exec("update batches set expires_at = now()")
	f := h.function() // with the rights of its role only
	for range 3 {
		if _, _, err := f.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ops, _, err := h.store.Operations.ListOperations(t.Context(), apidb.OwnerOf(""), uuid.Nil, 10)
	if err != nil || len(ops) != 1 || ops[0].Command != jobevent.CommandCancel || !strings.Contains(string(ops[0].Filter), id.String()) {
		t.Errorf("the operations are %+v, %v", ops, err)
	}
}
