package waitstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
)

const (
	lookMost = 500             // waits of one pass
	lookFor  = 5 * time.Second // after which the rest of a pass is left to the next

	cancelMost = 100 // children of a job, in one pass

	// lookAgain is when a wait is looked at again if its job cannot be woken yet. The status of the job when it is
	// SCHEDULED leads to a look at once, so this is for a status that comes late and for a command that is not answered.
	lookAgain = time.Second
	// lookAgainForChild is when the end of a parent is looked at again if a child has no job yet, since a gateway that has
	// kept the wait stores the job within its patience, or if the child is being cancelled.
	lookAgainForChild = time.Minute
	// lookLater is when a wait is looked at again after its job was woken, unless the handler has asked by then: the
	// scheduler's database may have been restored to a moment before.
	lookLater = 10 * time.Minute
)

// Looked has what must be published after a pass over the waits.
type Looked struct {
	Commands []commandstore.Command
	Failed   []error // jobs whose waits are looked at again later
}

// Look wakes the jobs whose waits are done, and cancels the children of jobs that have ended. next is how long until a
// wait is due for a look, at most idle.
func (s *Store) Look(ctx context.Context, idle time.Duration) (looked Looked, next time.Duration, err error) {
	jobs, err := s.q.WaitsToLookAt(ctx, lookMost)
	if err != nil {
		return looked, 0, apidb.Classify("look for waits", err)
	}
	for began := time.Now(); len(jobs) > 0 && time.Since(began) < lookFor; jobs = jobs[1:] {
		commands, err := s.lookAt(ctx, jobs[0])
		if err != nil && ctx.Err() != nil {
			return looked, 0, err
		}
		looked.Commands = append(looked.Commands, commands...)
		if err != nil {
			looked.Failed = append(looked.Failed, fmt.Errorf("waits of job %s: %w", jobs[0], err))
		}
	}
	seconds, err := s.q.WaitsNextLook(ctx)
	next = time.Duration(min(max(seconds, 0), idle.Seconds()) * float64(time.Second))
	if len(looked.Failed) > 0 {
		next = max(next, lookAgain)
	}
	return looked, next, apidb.Classify("look for waits", err)
}

func (s *Store) lookAt(ctx context.Context, id uuid.UUID) ([]commandstore.Command, error) {
	var l look
	err := s.db.Tx(ctx, func(q *gen.Queries) error {
		job, err := q.JobLock(ctx, gen.JobLockParams{JobID: id})
		if errors.Is(err, pgx.ErrNoRows) {
			l = look{}
			return nil // it was deleted with its waits
		}
		if err != nil {
			return err
		}
		rows, err := q.WaitsLock(ctx, id)
		if err != nil {
			return err
		}
		l = look{q: q, job: job, id: id, p: gen.WaitsLookedParams{JobID: id}}
		if jobstate.Status(job.Status).Terminal() {
			err = l.end(ctx, rows)
		} else {
			err = l.wake(ctx, rows)
		}
		if err != nil {
			return err
		}
		return q.WaitsLooked(ctx, l.p)
	})
	if err != nil {
		return nil, err
	}
	for _, child := range l.cancel {
		err = errors.Join(err, s.cancel(ctx, &l, child))
	}
	return l.commands, err
}

// cancel is a transaction of its own, so that no statement waits for it and for another child. A parent that was
// retried meanwhile keeps the child.
func (s *Store) cancel(ctx context.Context, l *look, child uuid.UUID) error {
	kept := l.commands
	return s.db.Tx(ctx, func(q *gen.Queries) error {
		l.q, l.commands = q, kept
		ended, err := q.JobsEnded(ctx, []uuid.UUID{l.id})
		if err != nil || len(ended) == 0 {
			return err
		}
		_, err = l.command(ctx, child, jobevent.CommandCancel, nil)
		return err
	})
}

// look is the transaction about the waits of one job.
type look struct {
	q        *gen.Queries
	id       uuid.UUID
	job      gen.JobLockRow
	p        gen.WaitsLookedParams
	commands []commandstore.Command
	cancel   []uuid.UUID // children, once the transaction has committed
}

// note stores what follows for a wait; again is when it is looked at again, 0: never.
func (l *look) note(row gen.WaitsLockRow, status Status, again time.Duration) {
	l.p.Names = append(l.p.Names, row.Name)
	l.p.Statuses = append(l.p.Statuses, string(status))
	l.p.AgainsMs = append(l.p.AgainsMs, again.Milliseconds())
}

// wake reschedules a job that waits, once one of its waits is done with all others of its group.
func (l *look) wake(ctx context.Context, rows []gen.WaitsLockRow) error {
	open, latest := map[string]bool{}, map[string]int32{} // by group: in the latest attempt that has asked for it
	for _, row := range rows {
		if group := nullable.Value(row.GroupName); row.Attempt > latest[group] {
			latest[group], open[group] = row.Attempt, false
		}
		if group := nullable.Value(row.GroupName); row.Attempt == latest[group] && Status(row.Status) == Open {
			open[group] = true
		}
	}
	asked, has := 0, false // the latest attempt whose wait is done
	for i := range rows {
		row := &rows[i]
		if row.LookAt == nil || row.LookAt.After(l.job.At) {
			continue
		}
		if Status(row.Status) == Open && row.UntilAt != nil && !l.job.At.Before(*row.UntilAt) {
			row.Status = string(TimedOut)
		}
		if s := Status(row.Status); (s == Done || s == TimedOut) && (row.GroupName == nil || !open[*row.GroupName]) {
			asked, has = max(asked, int(row.Attempt)), true
		}
	}
	again := time.Duration(0)
	if has {
		var err error
		if again, err = l.reschedule(ctx, asked); err != nil {
			return err
		}
	}
	for _, row := range rows {
		if row.LookAt != nil && !row.LookAt.After(l.job.At) {
			l.note(row, Status(row.Status), again)
		}
	}
	return nil
}

// reschedule lets the job run now if it waits after the attempt that asked. again is when to look again, since it
// cannot be known yet whether the job will run, or another command is not answered.
func (l *look) reschedule(ctx context.Context, asked int) (again time.Duration, err error) {
	attempt := int(l.job.Attempt)
	over := true // the attempt that asked
	switch jobstate.Status(l.job.Status) {
	case jobstate.Scheduled:
		if attempt >= asked {
			again, err = l.command(ctx, l.id, jobevent.CommandReschedule, &l.job.At)
			if again == 0 && attempt == asked {
				again = lookLater
			}
			return again, err
		}
		over = false
	case jobstate.Pending, jobstate.Retrying: // it runs again anyway
		over = attempt >= asked
	case jobstate.Queued, jobstate.Running, jobstate.Waiting: // an attempt after it asks by itself
		over = attempt > asked
	case jobstate.Completed, jobstate.Failed, jobstate.Cancelled:
	}
	if !over {
		again = lookAgain
	}
	return again, nil
}

// command keeps a command. again is when to try it again, since another command of the job is not answered yet.
func (l *look) command(
	ctx context.Context, id uuid.UUID, command string, runAt *time.Time,
) (again time.Duration, err error) {
	asked := commandstore.Command{JobID: id, Command: command, By: jobevent.ByWait, RunAt: runAt}
	kept, err := commandstore.KeepCommandInTx(ctx, l.q, apidb.Everyone, asked, nil)
	var refused *commandstore.RefusedError
	switch {
	case errors.As(err, &refused) && (refused.Pending != "" || refused.Callback):
		return lookAgain, nil
	case errors.As(err, &refused), errors.Is(err, pgx.ErrNoRows):
		return 0, nil
	case err == nil:
		l.commands = append(l.commands, kept)
	}
	return 0, err
}

// end closes the waits of a job that has ended: if it is retried it calls what has not completed once more. Children
// that run are to be cancelled.
func (l *look) end(ctx context.Context, rows []gen.WaitsLockRow) error {
	waits := make([]Wait, len(rows))
	for i, row := range rows {
		waits[i] = Wait{Name: row.Name, EventType: nullable.Value(row.EventType), Run: int(row.Run)}
	}
	parent := Parent{JobID: l.id, OwnerID: l.job.OwnerID}
	if err := findChildren(ctx, l.q, parent, waits); err != nil {
		return err
	}
	for i, row := range rows {
		status, again := Status(row.Status), time.Duration(0)
		child := waits[i].Child
		switch {
		case row.EventType != nil && status != Open || child != nil && child.Status == jobstate.Completed:
			l.note(row, status, 0)
			continue
		case row.EventType != nil:
		case child == nil && row.DoneAt == nil: // the gateway may be about to store it
			again = lookAgainForChild
		case child == nil || child.Status.Terminal():
		case child.Cancelling:
			again = lookAgainForChild
		default:
			again = lookAgain // whether it is being cancelled
			if len(l.cancel) < cancelMost {
				l.cancel = append(l.cancel, child.JobID)
			}
		}
		l.note(row, Closed, again)
	}
	return nil
}
