package monitor

import (
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

type workersBody struct {
	Workers []workerBody `json:"workers"`
}

type workerBody struct {
	WorkerID   string             `json:"workerId"`
	Version    string             `json:"version"`
	Live       bool               `json:"live"`
	Stopping   bool               `json:"stopping"`
	Draining   bool               `json:"draining"`
	Drained    bool               `json:"drained"`
	SeenAt     time.Time          `json:"seenAt"`
	Queues     []string           `json:"queues"`
	JobTypes   []string           `json:"jobTypes"`
	Partitions map[string][]int32 `json:"partitions"`
	Slots      int                `json:"slots"`
	Free       *int               `json:"free"` // these are null for an owner: they depend on the jobs of others
	Busy       *int               `json:"busy"`
	Rate       *float64           `json:"rate"`
	Attempts   []heldAttempt      `json:"attempts"`
}

type heldAttempt struct {
	JobID     uuid.UUID         `json:"jobId"`
	Attempt   int               `json:"attempt"`
	StartedAt *time.Time        `json:"startedAt"`
	Progress  *jobview.Progress `json:"progress"`
}

// ListWorkers is GET /api/workers. An owner sees all workers, but only the attempts of its own jobs.
func (a *API) ListWorkers(c *gin.Context) error {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	workers, err := a.Workers.List(ctx, edge.WidestOwner(c))
	if err != nil {
		return err
	}
	body := workersBody{Workers: make([]workerBody, len(workers))}
	for i := range workers {
		jobview.OpenProgress(a.Sealer, workers[i].Attempts)
		body.Workers[i] = newWorkerBody(&workers[i])
		if edge.IsInstallation(c) {
			body.Workers[i].load(&workers[i])
		}
	}
	return a.Audit.Show(c, body)
}

func newWorkerBody(w *workerstore.Worker) workerBody {
	body := workerBody{
		WorkerID: w.WorkerID, Version: w.Version, Live: w.Live, Stopping: w.Stopping,
		Draining: w.Draining(), Drained: w.Drained(), SeenAt: w.SeenAt.UTC(),
		Queues: jobview.List(w.Queues), JobTypes: make([]string, len(w.JobTypes)), Partitions: map[string][]int32{},
		Slots: w.Slots, Attempts: make([]heldAttempt, len(w.Attempts)),
	}
	for i, typ := range w.JobTypes {
		body.JobTypes[i] = typ.Name
	}
	for queue, partitions := range w.Partitions {
		body.Partitions[queue] = jobview.List(partitions)
	}
	for i, held := range w.Attempts {
		body.Attempts[i] = heldAttempt{
			JobID: held.JobID, Attempt: held.Attempt, StartedAt: jobview.UTC(held.StartedAt),
			Progress: jobview.NewProgress(held.Progress),
		}
	}
	return body
}

// load sets how busy a worker is.
func (b *workerBody) load(w *workerstore.Worker) {
	busy := max(w.Slots-w.Free, 0)
	if w.Stopping || w.Heartbeat.Draining { // it has no free slots, and those that are not busy are closed
		busy = min(busy, len(w.Attempts))
	}
	b.Free, b.Busy, b.Rate = &w.Free, &busy, &w.Rate
}
