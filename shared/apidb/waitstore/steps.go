package waitstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

// Limits of the steps of a job.
const (
	MostSteps     = 1_000
	MostStepBytes = 16 << 20 // of results
)

// ErrStepsFull refuses a further step of a job.
var ErrStepsFull = fmt.Errorf("a job has at most %d steps and %d MiB of results in all", MostSteps, MostStepBytes>>20)

// Step is what a step of a job's handler returned.
type Step struct {
	Name    string
	Attempt int // that saved it
	SavedAt time.Time
	Until   *time.Time // of a sleep: when it is over
	TookMs  *int64     // nil: it was not measured
	Bytes   int        // of the result before it was sealed
	Sealed  string     // the result as it is stored; empty: it is left out
}

// KeepStep stores a step of an attempt, and returns it as it is stored: a step that the job has already stays as it is.
// The error is ErrNoJob or ErrStepsFull. The caller has checked that the attempt runs. The status of the job does not
// count here: it may still be the one before a retry.
func (s *Store) KeepStep(ctx context.Context, owner apidb.Owner, jobID uuid.UUID, step Step) (Step, error) {
	var row gen.StepKeepRow
	err := s.db.Tx(ctx, func(q *gen.Queries) error {
		if _, err := q.JobLock(ctx, gen.JobLockParams{JobID: jobID, Owner: owner.Filter()}); err != nil {
			return err
		}
		var err error
		row, err = q.StepKeep(ctx, gen.StepKeepParams{
			JobID: jobID, Name: step.Name, Attempt: int32(step.Attempt), UntilAt: step.Until, TookMs: step.TookMs,
			Bytes: int32(step.Bytes), Result: step.Sealed, MaxSteps: MostSteps, MaxBytes: MostStepBytes,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrStepsFull
		}
		return err
	})
	return newStep(row), apidb.Classify(fmt.Sprintf("keep step %q of job %s", step.Name, jobID), err)
}

// StepsAfter returns steps of a job in the order of their names: those after a name, at least one and otherwise about
// maxBytes of results, and whether there are more.
func (s *Store) StepsAfter(
	ctx context.Context, owner apidb.Owner, jobID uuid.UUID, after string, maxBytes int64,
) (steps []Step, more bool, err error) {
	rows, err := s.q.StepsAfter(ctx, gen.StepsAfterParams{
		JobID: jobID, Owner: owner.Filter(), AfterName: after, MaxBytes: maxBytes,
	})
	for _, row := range rows {
		steps = append(steps, newStep(gen.StepKeepRow{
			Name: row.Name, Attempt: row.Attempt, SavedAt: row.SavedAt, UntilAt: row.UntilAt, TookMs: row.TookMs,
			Bytes: row.Bytes, Result: row.Result,
		}))
		more = row.More
	}
	return steps, more, apidb.Classify("read steps", err)
}

// StepsOfJob returns the steps of a job in the order in which they were saved. If they have more than maxBytes of
// results, the largest are left out.
func (s *Store) StepsOfJob(ctx context.Context, jobID uuid.UUID, maxBytes int64) ([]Step, error) {
	rows, err := s.q.StepsOfJob(ctx, gen.StepsOfJobParams{JobID: jobID, MaxBytes: maxBytes})
	steps := make([]Step, len(rows))
	for i, row := range rows {
		steps[i] = newStep(gen.StepKeepRow(row))
	}
	return steps, apidb.Classify("list steps", err)
}

func newStep(row gen.StepKeepRow) Step {
	return Step{
		Name: row.Name, Attempt: int(row.Attempt), SavedAt: row.SavedAt, Until: row.UntilAt, TookMs: row.TookMs,
		Bytes: int(row.Bytes), Sealed: row.Result,
	}
}
