package batchstore_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/batchstore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var rules = schedulestore.Rules{Rules: jobspec.Rules{Queues: []string{"default"}, JobTypes: []string{"*"}}}

const (
	onComplete = `{"jobType": "done", "payload": {"n": 12345678901234567890, "of": {"$batch": "summary"}}}`
	onFailure  = `{"jobType": "undone", "payload": [{"$batch": "summary"}]}`
)

type fixture struct{ *apidbtest.Fixture }

func open(t testing.TB) fixture { return fixture{apidbtest.New(t)} }

// create makes a batch with so many jobs.
func (f fixture) create(t testing.TB, req apibody.Batch, jobs int) (uuid.UUID, []uuid.UUID) {
	t.Helper()
	asked := batchstore.NewBatch{ID: f.NewID(), Request: req}
	for range jobs {
		asked.Jobs = append(asked.Jobs, f.jobOf(asked.ID, req.OwnerID))
	}
	made, err := f.Batches.Create(t.Context(), nil, asked)
	if err != nil {
		t.Fatal(err)
	}
	return made.ID, idsOf(made.Jobs)
}

func (f fixture) jobOf(batch uuid.UUID, owner string) jobstore.NewJob {
	job := apidbtest.NewJob()
	job.JobID, job.Request.BatchID, job.Request.OwnerID = f.NewID(), batch, owner
	return job
}

func idsOf(jobs []jobstore.Accepted) (ids []uuid.UUID) {
	for _, job := range jobs {
		ids = append(ids, job.JobID)
	}
	return ids
}

// add submits a job to a batch, and reports whether the batch took it.
func (f fixture) add(t testing.TB, batch uuid.UUID) (uuid.UUID, bool) {
	t.Helper()
	accepted := f.Accept(t, f.jobOf(batch, ""))
	return accepted.JobID, accepted.Late == nil
}

// become publishes a status of a job, one version after the one before.
func (f fixture) become(t testing.TB, id uuid.UUID, status jobstate.Status) {
	t.Helper()
	f.Apply(t, apidbtest.Status(id, f.ReadJob(t, id).Version+1, status))
}

func (f fixture) sweep(t testing.TB) batchstore.Swept {
	t.Helper()
	swept, _, err := f.Batches.Sweep(t.Context(), rules, time.Minute)
	if err != nil || len(swept.Failed) > 0 {
		t.Fatal(err, swept.Failed)
	}
	return swept
}

func (f fixture) batch(t testing.TB, id uuid.UUID) batchstore.Batch {
	t.Helper()
	batch, err := f.Batches.Get(t.Context(), apidb.Everyone, id)
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// operate does all that operations have to do, and has the scheduler apply each command.
func (f fixture) operate(t testing.TB) {
	t.Helper()
	for {
		ids, err := f.Operations.UnfinishedOperations(t.Context(), uuid.Nil, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(ids) == 0 {
			return
		}
		for _, id := range ids {
			commands, _, err := f.Operations.Operate(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for _, command := range commands {
				to := jobstate.Cancelled
				if command.Command == jobevent.CommandRetry {
					to = jobstate.Pending
				}
				status := apidbtest.Status(command.JobID, command.Version+1, to, func(s *jobevent.Status) {
					s.LastCommand = &jobevent.CommandResult{Number: command.Number, Command: command.Command, Applied: true}
				})
				f.Apply(t, status)
			}
		}
	}
}
