package monitor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

type workersBody struct {
	Workers       []workerBody               `json:"workers"`
	WithoutWorker []client.TypeWithoutWorker `json:"withoutWorker"`
}

// mostUnserved bounds the listed types without a worker.
const mostUnserved = 100

type workerBody struct {
	WorkerID   string             `json:"workerId"`
	Version    string             `json:"version"`
	Live       bool               `json:"live"`
	Stopping   bool               `json:"stopping"`
	Draining   bool               `json:"draining"`
	Drained    bool               `json:"drained"`
	StartedAt  *time.Time         `json:"startedAt"` // nil: an older version, which does not report it
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
	JobType   *string           `json:"jobType"` // null: the job is not, or no longer, in the api database
	OwnerID   *string           `json:"ownerId"`
	Tags      []string          `json:"tags"`
	RanBy     *string           `json:"ranBy"`
	StartedAt *time.Time        `json:"startedAt"`
	Progress  *jobview.Progress `json:"progress"`
}

// ListWorkers is GET /api/workers. An owner sees all workers, but only the attempts of its own jobs.
func (a *API) ListWorkers(c *gin.Context) error {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	owner := edge.OwnerOf(c)
	workers, held, err := a.Workers.ListFor(ctx, owner)
	if err != nil {
		return err
	}
	body := workersBody{Workers: make([]workerBody, len(workers))}
	if body.WithoutWorker, err = a.withoutWorker(ctx, owner); err != nil {
		return err
	}
	body.WithoutWorker = body.WithoutWorker[:min(len(body.WithoutWorker), mostUnserved)]
	for i := range workers {
		jobview.OpenProgress(a.Sealer, workers[i].Attempts)
		workers[i].SeenBy(owner)
		body.Workers[i] = newWorkerBody(&workers[i], held)
		if edge.IsInstallation(c) {
			body.Workers[i].load(&workers[i])
		}
	}
	return a.Audit.Show(c, body)
}

// withoutWorker returns the job types of which jobs wait and that no live worker runs, those of most jobs first.
func (a *API) withoutWorker(ctx context.Context, owner apidb.Owner) ([]client.TypeWithoutWorker, error) {
	unserved := []client.TypeWithoutWorker{}
	stats, err := a.Stats.Get(ctx, owner, "", "")
	if err != nil {
		return nil, err
	}
	for of, n := range stats.Pending {
		lacks, err := a.Workers.LacksWorkers(ctx, of.Queue, of.JobType, owner.Filter())
		if err != nil {
			return nil, err
		}
		if lacks {
			unserved = append(unserved, client.TypeWithoutWorker{Queue: of.Queue, JobType: of.JobType, Jobs: n})
		}
	}
	slices.SortFunc(unserved, func(a, b client.TypeWithoutWorker) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.JobType, b.JobType))
	})
	return unserved, nil
}

func newWorkerBody(w *workerstore.Worker, jobs map[uuid.UUID]workerstore.HeldJob) workerBody {
	body := workerBody{
		WorkerID: w.WorkerID, Version: w.Version, Live: w.Live, Stopping: w.Stopping,
		Draining: w.Draining(), Drained: w.Drained(), SeenAt: w.SeenAt.UTC(),
		Queues: jobview.List(w.Queues), JobTypes: make([]string, len(w.JobTypes)), Partitions: map[string][]int32{},
		Slots: w.Slots, Attempts: make([]heldAttempt, len(w.Attempts)),
	}
	if !w.StartedAt.IsZero() {
		body.StartedAt = jobview.UTC(&w.StartedAt)
	}
	for i, typ := range w.JobTypes {
		body.JobTypes[i] = typ.Name
	}
	for queue, partitions := range w.Partitions {
		body.Partitions[queue] = jobview.List(partitions)
	}
	for i, held := range w.Attempts {
		body.Attempts[i] = heldAttempt{
			JobID: held.JobID, Attempt: held.Attempt, StartedAt: jobview.UTC(held.StartedAt), Tags: []string{},
			RanBy: jobview.Given(held.RanBy), Progress: jobview.NewProgress(held.Progress),
		}
		if job, isKnown := jobs[held.JobID]; isKnown {
			body.Attempts[i].JobType, body.Attempts[i].OwnerID = &job.JobType, jobview.Given(job.OwnerID)
			body.Attempts[i].Tags = jobview.List(job.Tags)
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
