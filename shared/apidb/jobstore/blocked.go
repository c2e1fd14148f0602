package jobstore

import (
	"context"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// The kinds of a Block.
const (
	BlockDependency = "dependency"
	BlockOrder      = "order"
	BlockSingleton  = "singleton"
	BlockPause      = "pause" // by a control, for example queue:default
	BlockLimit      = "limit"
	BlockWorker     = "worker" // no live worker of the queue runs the job type that is the id
)

// maxDependencies bounds the listed dependencies of a job that have not ended.
const maxDependencies = 20

// maxListedAfter bounds how many dependencies of each job a list looks at.
const maxListedAfter = 100

// findBlocks finds what blocks the waiting jobs among jobs. It queries the database only if one of them has
// dependencies, and reads controls and workers at most once a second. It looks only at the first mostAfter dependencies
// of a job.
func (s *Store) findBlocks(ctx context.Context, jobs []Job, mostAfter int32) error {
	if err := s.findBlockers(ctx, jobs, mostAfter); err != nil {
		return err
	}
	for i := range jobs {
		if job := &jobs[i]; job.Status == jobstate.Pending {
			controls, err := s.controls.Holding(ctx, job.Queue, job.JobType, job.OwnerID, job.FairnessKey)
			if err != nil {
				return err
			}
			job.BlockedBy = append(job.BlockedBy, blocksOf(controls)...)
			lacks, err := s.workers.LacksWorkers(ctx, job.Queue, job.JobType, &job.OwnerID)
			if err != nil {
				return err
			}
			if lacks {
				job.BlockedBy = append(job.BlockedBy, jobevent.Block{Kind: BlockWorker, ID: job.JobType})
			}
		}
	}
	return nil
}

func blocksOf(controls []controlstore.Control) (blocks []jobevent.Block) {
	for _, control := range controls {
		id := control.ID()
		if control.Paused {
			blocks = append(blocks, jobevent.Block{Kind: BlockPause, ID: id})
		}
		if control.MaxRunning != nil || control.StartsPerSecond != nil {
			blocks = append(blocks, jobevent.Block{Kind: BlockLimit, ID: id})
		}
	}
	return blocks
}

func (s *Store) findBlockers(ctx context.Context, jobs []Job, mostAfter int32) error {
	at := map[uuid.UUID]*Job{}
	var ids []uuid.UUID
	for i := range jobs {
		if job := &jobs[i]; waits(job) && (job.OrderingKey != "" || job.SingletonKey != "" || job.HasAfter) {
			at[job.JobID] = job
			ids = append(ids, job.JobID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := s.q.JobsBlocks(ctx, gen.JobsBlocksParams{
		JobIDs: ids, MaxDependencies: maxDependencies, MostLookedAt: mostAfter,
	})
	for _, row := range rows {
		job, block := at[row.JobID], jobevent.Block{Kind: row.Kind, ID: row.ID}
		if row.Kind == BlockOrder && job.SingletonKey != "" {
			block = jobevent.Block{Kind: BlockSingleton, ID: job.SingletonKey}
		}
		job.BlockedBy = append(job.BlockedBy, block)
	}
	return err
}

func waits(job *Job) bool {
	return job.Status == jobstate.Scheduled || job.Status == jobstate.Pending
}
