package apidb

import (
	"context"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// The kinds of a Block.
const (
	BlockDependency = "dependency"
	BlockOrder      = "order"
)

// maxDependencies is how many of those that have to end first are listed as not ended.
const maxDependencies = 20

// findBlocks says of jobs that wait what they wait for, beside a worker. It asks the database only where
// one is tied to others.
func (s *Store) findBlocks(ctx context.Context, jobs []Job) error {
	at := map[uuid.UUID]*Job{}
	var ids []uuid.UUID
	for i := range jobs {
		if job := &jobs[i]; isWaiting(job) && (job.OrderingKey != "" || job.HasAfter) {
			at[job.JobID] = job
			ids = append(ids, job.JobID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := s.q.JobsTied(ctx, gen.JobsTiedParams{JobIDs: ids, MaxDependencies: maxDependencies})
	for _, row := range rows {
		job := at[row.JobID]
		job.BlockedBy = append(job.BlockedBy, jobevent.Block{Kind: row.Kind, ID: row.ID})
	}
	return err
}

func isWaiting(job *Job) bool {
	return job.Status == jobstate.Scheduled || job.Status == jobstate.Pending
}
