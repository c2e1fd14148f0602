package schedulerdb

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// keepEarly keeps commands whose jobs have not arrived. It holds the lock of the ledger: Ingest holds it, too, from its
// look for such commands until its commit, so that it does not miss them.
// Why a command may come before its job: docs/decisions/scheduling.md#a-command-is-kept-until-its-job-arrives
func (s *Store) keepEarly(ctx context.Context, commands []jobevent.Command) error {
	var p gen.EarlyCommandsKeepParams
	for _, c := range commands {
		p.JobIDs, p.Numbers = append(p.JobIDs, c.JobID), append(p.Numbers, int32Of(c.Number))
		p.Commands = append(p.Commands, mustJSON(c))
	}
	return s.locked(ctx, func(q *gen.Queries) error {
		if err := q.EarlyCommandsKeep(ctx, p); err != nil {
			return fmt.Errorf("keep early commands: %w", err)
		}
		return nil
	})
}

// applyEarly applies the kept commands to the jobs that have just been inserted.
func applyEarly(
	ctx context.Context, q *gen.Queries, kept []gen.EarlyCommandsRow, created []jobevent.Created, l *dispatch.Ledger,
) ([]emit.Snapshot, error) {
	isNew := make(map[uuid.UUID]bool, len(created))
	for i := range created {
		isNew[created[i].JobID] = true
	}
	var fresh, ids []uuid.UUID
	for _, row := range kept {
		if ids = append(ids, row.JobID); isNew[row.JobID] { // otherwise Command has applied it
			fresh = append(fresh, row.JobID)
		}
	}
	jobs, err := lockJobs(ctx, q, fresh)
	if err != nil {
		return nil, err
	}
	for _, row := range kept {
		var c jobevent.Command
		if err := json.Unmarshal(row.Command, &c); err != nil {
			return nil, fmt.Errorf("read early command of job %s: %w", row.JobID, err)
		}
		if job := jobs[row.JobID]; job != nil {
			job.command(c)
		}
	}
	if err := changeJobs(ctx, q, jobs); err != nil {
		return nil, err
	}
	delta := dispatch.NewDelta()
	saved, err := saveJobs(ctx, q, jobs, &delta)
	if err != nil {
		return nil, err
	}
	l.Enter(delta)
	if err := q.EarlyCommandsDrop(ctx, ids); err != nil {
		return nil, fmt.Errorf("drop early commands: %w", err)
	}
	return saved, nil
}
