package apidb

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Command is a kept command: it counts until a job-status answers it.
type Command struct {
	JobID   uuid.UUID
	TraceID uuid.UUID
	Number  int
	Command string // jobevent.CommandCancel or CommandRetry
	By      string
}

// RefusedError says why a command was not kept.
type RefusedError struct {
	Status  jobstate.Status
	Pending string // the command that is not answered yet; empty: the status is the reason
}

func (e *RefusedError) Error() string {
	if e.Pending != "" {
		return "the job's command " + e.Pending + " is not answered yet"
	}
	return "the job is " + string(e.Status)
}

// KeepCommand keeps a command under the job's next number. The same command, while it is not answered,
// has the number that it has. Else the error is ErrNoJob or a *RefusedError.
func (s *Store) KeepCommand(ctx context.Context, jobID uuid.UUID, command, by string) (Command, error) {
	kept := Command{JobID: jobID, Command: command, By: by}
	err := s.tx(ctx, func(q *gen.Queries) error {
		// The lock comes first, in a statement of its own, so that what follows sees the latest commits.
		job, err := q.JobLock(ctx, jobID)
		if err != nil {
			return err
		}
		kept.TraceID = job.TraceID
		before, err := q.CommandOfJob(ctx, jobID)
		switch {
		case err == nil && before.Command == command:
			kept.Number, kept.By = int(before.Number), before.ByWhom
			return nil
		case err == nil:
			return &RefusedError{Status: jobstate.Status(job.Status), Pending: before.Command}
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		case !allowed(command, jobstate.Status(job.Status)):
			return &RefusedError{Status: jobstate.Status(job.Status)}
		}
		number, err := q.CommandKeep(ctx, gen.CommandKeepParams{JobID: jobID, Command: command, ByWhom: by})
		kept.Number = int(number)
		return err
	})
	return kept, classify(fmt.Sprintf("keep %s of job %s", command, jobID), err)
}

func allowed(command string, status jobstate.Status) bool {
	switch command {
	case jobevent.CommandCancel:
		return !status.Terminal()
	case jobevent.CommandRetry:
		return status == jobstate.Failed || status == jobstate.Cancelled
	}
	return false
}
