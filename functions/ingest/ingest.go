// Package ingest stores accepted jobs in the scheduler's database, and dispatches those for which there is room at
// once.
package ingest

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Name is the function's name.
const Name = "ingest"

// Function stores job.created events.
type Function struct {
	store *schedulerdb.Store
}

// New returns the function on the scheduler's database.
func New(store *schedulerdb.Store) *Function { return &Function{store} }

// Host is how the function is hosted.
func (f *Function) Host() funchost.Function {
	return funchost.Function{
		Name: Name, Topics: []string{jobevent.TopicCreated}, Handle: f.Handle, Ready: f.store.Ping, Pool: f.store.Connections,
	}
}

// Handle handles job-created events. An accepted job that cannot be used is stored as failed: otherwise the API would
// republish it for ever.
func (f *Function) Handle(ctx context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
	effects, err := f.ingest(ctx, batch)
	if len(batch) == 1 && errors.Is(err, jobevent.ErrInvalid) && batch[0].Type() == jobevent.TypeCreated {
		if jobID := batch[0].JobID(); jobID != uuid.Nil {
			telemetry.Logger(ctx).WarnContext(ctx, "stored an unusable job as failed", telemetry.FieldJobID, jobID,
				telemetry.FieldTraceID, batch[0].TraceID(), "error", err)
			effects, err = f.store.IngestUnusable(ctx, placeOf(batch[0]), err.Error())
		}
	}
	if err != nil {
		return nil, err
	}
	return effects.Events(Name)
}

// placeOf reads only the job's ordering key and predecessor, because another field may be what makes the job unusable.
func placeOf(it jobevent.Item) jobevent.Created {
	var place struct{ OwnerID, OrderingKey, OrderAfter string }
	_ = json.Unmarshal(it.Data(), &place) // an unreadable field stays empty
	job := jobevent.Created{JobID: it.JobID(), TraceID: it.TraceID()}
	if after, err := uuid.Parse(place.OrderAfter); err == nil {
		job.OwnerID, job.OrderingKey, job.OrderAfter = place.OwnerID, place.OrderingKey, &after
	}
	return job
}

func (f *Function) ingest(ctx context.Context, batch []jobevent.Item) (emit.Effects, error) {
	created := make([]jobevent.Created, len(batch))
	for i, e := range batch {
		var err error
		if created[i], err = jobevent.DecodeAs[jobevent.Created](e, jobevent.TypeCreated); err != nil {
			return emit.Effects{}, err
		}
	}
	return f.store.Ingest(ctx, created)
}
