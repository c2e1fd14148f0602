package commandstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
)

// Command is a stored command. It is pending until a job-status answers it.
type Command struct {
	JobID   uuid.UUID
	TraceID uuid.UUID
	Number  int
	Command string // one of jobevent's commands, except the report
	By      string
	RunAt   *time.Time // of a reschedule
	Change  *JobChange // nil: none, or it does not fit into this pass
	Version int64      // of the job when it was read

	ownerID string                   // of the job
	match   func(version int64) bool // whether it is about a job of this version; nil: of any
}

// RefusedError is the reason why a command was not stored.
type RefusedError struct {
	Status  jobstate.Status
	Pending string // the unanswered command; empty: the status is the reason

	Callback bool // a callback is not answered yet
	Expires  bool // the job would expire before it started
	Started  bool // the job has had an attempt
	Queue    bool // its queue is being removed, or was
	Replaced bool // a later run of its flow has a new job in its place
}

func (e *RefusedError) Error() string {
	switch {
	case e.Pending != "":
		return "the job's command " + e.Pending + " is not answered yet"
	case e.Callback:
		return "a callback of the job is not answered yet"
	case e.Replaced:
		return "a later run of the flow has a new job in the place of this one"
	case e.Queue:
		return "the job's queue is being removed or was removed; run-again makes a new job, which can name another queue"
	case e.Expires:
		return "the job expires before it could run then"
	case e.Started:
		return "the job has started before"
	}
	return "the job is " + string(e.Status)
}

// Unwrap returns the error for the client.
func (e *RefusedError) Unwrap() error { return apierror.New(apierror.InvalidStateTransition, "%s", e) }

// KeepCommand stores a command under the next number of one of the owner's jobs. A repeated command keeps its number
// until it is answered. Otherwise the error is ErrNoJob or a *RefusedError.
func (s *Store) KeepCommand(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, jobID uuid.UUID, command, by string,
) (Command, error) {
	return s.keep(ctx, entry, owner, Command{JobID: jobID, Command: command, By: by}, nil)
}

// KeepReschedule is KeepCommand for a reschedule. A different instant makes a different command.
func (s *Store) KeepReschedule(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, jobID uuid.UUID, when apibody.When, by string,
) (Command, error) {
	kept := Command{JobID: jobID, Command: jobevent.CommandReschedule, By: by, RunAt: when.RunAt}
	if when.RunAt != nil {
		return s.keep(ctx, entry, owner, kept, nil)
	}
	delay := when.Delay.Milliseconds()
	return s.keep(ctx, entry, owner, kept, &delay)
}

func (s *Store) keep(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, asked Command, delayMs *int64,
) (kept Command, err error) {
	asked.match = s.match
	err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		kept, err = KeepCommandInTx(ctx, q, owner, asked, delayMs)
		entry.SetOwner(kept.ownerID)
		return err
	})
	return kept, apidb.Classify(fmt.Sprintf("keep %s of job %s", asked.Command, asked.JobID), err)
}

// KeepCommandInTx stores a command within a transaction. Only a reschedule has delayMs.
func KeepCommandInTx(
	ctx context.Context, q *gen.Queries, owner apidb.Owner, asked Command, delayMs *int64,
) (Command, error) {
	kept := asked
	// The lock comes first, in a statement of its own, so that the statements after it see the latest commits.
	job, err := q.JobLock(ctx, gen.JobLockParams{JobID: asked.JobID, Owner: owner.Filter()})
	if err != nil {
		return kept, err
	}
	kept.ownerID, kept.TraceID, kept.Version = job.OwnerID, job.TraceID, job.Version
	before, err := q.CommandOfJob(ctx, asked.JobID)
	if err == nil && isWake(before.Command, before.ByWhom) && !isWake(asked.Command, asked.By) {
		err = pgx.ErrNoRows // asked takes its place
	}
	switch {
	case err == nil && asked.is(before):
		kept.Number, kept.By = int(before.Number), before.ByWhom
		return kept, nil
	case err == nil:
		return kept, &RefusedError{Status: jobstate.Status(job.Status), Pending: before.Command}
	case !errors.Is(err, pgx.ErrNoRows):
		return kept, err
	case !slices.Contains(Allows(asked.Command), jobstate.Status(job.Status)):
		return kept, &RefusedError{Status: jobstate.Status(job.Status)}
	case asked.Change != nil && job.Attempt > 0:
		return kept, &RefusedError{Status: jobstate.Status(job.Status), Started: true}
	case asked.Change != nil && asked.Change.After != int(job.CommandSeq):
		return kept, ErrChanged
	case asked.match != nil && !asked.match(job.Version):
		return kept, ErrNotRead
	case asked.Command == jobevent.CommandReschedule && job.ExpiresAt != nil && job.Attempt == 0:
		at := job.At.Add(time.Duration(nullable.Value(delayMs)) * time.Millisecond)
		if asked.RunAt != nil {
			at = *asked.RunAt
		}
		if !at.Before(*job.ExpiresAt) {
			return kept, &RefusedError{Status: jobstate.Status(job.Status), Expires: true}
		}
	}
	if asked.Command == jobevent.CommandRetry {
		if replaced, err := q.JobsReplaced(ctx, []uuid.UUID{asked.JobID}); err != nil {
			return kept, err
		} else if len(replaced) > 0 {
			return kept, &RefusedError{Status: jobstate.Status(job.Status), Replaced: true}
		}
		if closed, err := q.QueuesClosed(ctx, []string{job.Queue}); err != nil {
			return kept, err
		} else if len(closed) > 0 {
			return kept, &RefusedError{Status: jobstate.Status(job.Status), Queue: true}
		}
	}
	if awaited, err := q.CallbacksInTheWay(ctx, []uuid.UUID{asked.JobID}); err != nil {
		return kept, err
	} else if len(awaited) > 0 {
		return kept, &RefusedError{Status: jobstate.Status(job.Status), Callback: true}
	}
	change, err := asked.Change.written(job.At)
	if err != nil {
		return kept, err
	}
	p := gen.CommandKeepParams{
		JobID: asked.JobID, Command: asked.Command, ByWhom: asked.By, RunAt: asked.RunAt, DelayMs: delayMs, Change: change,
	}
	if asked.Change != nil {
		p.ChangeHash = asked.Change.Hash
	}
	row, err := q.CommandKeep(ctx, p)
	kept.Number, kept.RunAt = int(row.Number), row.RunAt
	return kept, err
}

// isWake reports whether a command wakes a job. No client has asked for a wake, so it gives way to every other command,
// whose higher number keeps the scheduler from applying the wake later. A job that waits all the same is woken again.
func isWake(command, by string) bool {
	return command == jobevent.CommandReschedule && by == jobevent.ByWait
}

func (c Command) is(kept gen.CommandOfJobRow) bool {
	switch {
	case c.Command != kept.Command:
		return false
	case c.Command == jobevent.CommandReschedule:
		return c.RunAt != nil && c.RunAt.Equal(*kept.RunAt)
	}
	return c.Change == nil || bytes.Equal(c.Change.Hash, kept.ChangeHash)
}

// Allows returns the states in which a job accepts a command.
func Allows(command string) []jobstate.Status {
	switch command {
	case jobevent.CommandCancel:
		return []jobstate.Status{
			jobstate.Scheduled, jobstate.Pending, jobstate.Queued, jobstate.Running, jobstate.Waiting, jobstate.Retrying,
		}
	case jobevent.CommandRetry:
		return []jobstate.Status{jobstate.Failed, jobstate.Cancelled}
	case jobevent.CommandReschedule:
		return []jobstate.Status{jobstate.Scheduled, jobstate.Pending, jobstate.Retrying}
	case jobevent.CommandChange:
		return []jobstate.Status{jobstate.Scheduled, jobstate.Pending}
	case jobevent.CommandDelete:
		return []jobstate.Status{jobstate.Completed, jobstate.Failed, jobstate.Cancelled}
	}
	return nil
}
