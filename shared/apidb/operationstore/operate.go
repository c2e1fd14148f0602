package operationstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/shelves"
	"github.com/jobweaver/jobweaver/shared/apidb/joblist"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
)

const (
	// operationPage is how many jobs of an operation one transaction handles.
	operationPage = 500
	// operationWindow is how many it looks at, if few match its filter.
	operationWindow = 2_000
	// MaxUnanswered bounds the unanswered commands of one operation, so that other commands do not wait behind a
	// million of them.
	MaxUnanswered = 2_000
	// MaxSkips is how many refused or skipped jobs are listed.
	MaxSkips = 1_000
)

// Operate does the next piece of an operation in one transaction: it counts answers, stores commands for the next
// jobs, and ends the operation after the last. more reports that another piece can be done at once. Operate does
// nothing while another process works on the operation.
func (s *Store) Operate(ctx context.Context, id uuid.UUID) (commands []commandstore.Command, more bool, err error) {
	notify, done := s.db.BeginChange()
	defer done()
	err = s.db.RawTx(ctx, func(tx pgx.Tx) error {
		q := gen.New(tx)
		commands, more = nil, false
		rows, err := q.OperationLock(ctx, id)
		if err != nil || len(rows) == 0 {
			return err
		}
		work, err := newWork(tx, q, rows[0])
		if err != nil {
			return err
		}
		if more, err = work.piece(ctx); err != nil {
			return err
		}
		commands = work.commands
		if err := work.save(ctx); err != nil || !notify {
			return err
		}
		ids := make([]uuid.UUID, len(commands))
		for i := range commands {
			ids[i] = commands[i].JobID
		}
		return apidb.NotifyChange(ctx, q, apidb.ChangeStatus, ids)
	})
	return commands, more, apidb.Classify(fmt.Sprintf("do operation %s", id), err)
}

// work is a piece of an operation.
type work struct {
	tx       joblist.DB
	q        *gen.Queries
	op       gen.OperationLockRow
	filter   *operationFilter
	reasons  map[string]int64
	skips    []Skip
	commands []commandstore.Command
	finished bool
	changed  bool
}

func newWork(tx joblist.DB, q *gen.Queries, op gen.OperationLockRow) (*work, error) {
	w := &work{tx: tx, q: q, op: op}
	if err := json.Unmarshal(op.Reasons, &w.reasons); err != nil {
		return nil, fmt.Errorf("read reasons: %w", err)
	}
	var err error
	w.filter, err = readFilter(op.Filter)
	return w, err
}

func (w *work) piece(ctx context.Context) (more bool, err error) {
	// Before the answers are counted: a command that is not counted as unanswered has its answer in the table.
	unanswered, err := w.q.OperationUnanswered(ctx, gen.OperationUnansweredParams{
		OperationID: w.op.OperationID, Most: MaxUnanswered,
	})
	if err != nil {
		return false, err
	}
	if err := w.count(ctx); err != nil {
		return false, err
	}
	running := OperationStatus(w.op.Status) == OperationRunning && !w.op.Walked
	if running {
		if awaits, err := w.awaitsRetries(ctx); err != nil || awaits {
			return false, err
		}
	}
	if running && unanswered+operationPage <= MaxUnanswered {
		if err := w.walk(ctx); err != nil {
			return false, err
		}
		unanswered += int64(len(w.commands))
		running = !w.op.Walked
		more = running && unanswered+operationPage <= MaxUnanswered
	}
	if !running && unanswered == 0 {
		w.finish()
	}
	return more, nil
}

// awaitsRetries reports whether the cancel of a batch has to wait, because it would pass by jobs that are about to run
// again. Bulk looks again every second.
func (w *work) awaitsRetries(ctx context.Context) (bool, error) {
	if w.op.Command != jobevent.CommandCancel || w.filter == nil || w.filter.BatchID == nil {
		return false, nil
	}
	return w.q.OperationAwaitsRetries(ctx, gen.OperationAwaitsRetriesParams{
		OperationID: w.op.OperationID, BatchID: *w.filter.BatchID,
	})
}

// count takes the answers that have arrived.
func (w *work) count(ctx context.Context) error {
	answers, err := w.q.OperationAnswersTake(ctx, w.op.OperationID)
	if err != nil {
		return err
	}
	for _, answer := range answers {
		w.changed = true
		w.op.Applied += answer.Applied
		if answer.RefusedID != nil {
			w.leaveOut(*answer.RefusedID, *answer.Reason)
			w.op.Refused++
		}
	}
	return nil
}

// leaveOut notes a refused or skipped job, before it is counted.
func (w *work) leaveOut(jobID uuid.UUID, reason string) {
	w.reasons[reason]++
	if w.op.Refused+w.op.Skipped < MaxSkips {
		w.skips = append(w.skips, Skip{JobID: jobID, Reason: reason})
	}
}

// finish ends the operation. A job that was deleted for its age took its command with it.
func (w *work) finish() {
	if gone := w.op.Asked - w.op.Applied - w.op.Refused; gone > 0 {
		w.op.Refused += gone
		w.reasons["the job is deleted"] += gone
	}
	if w.op.Status = string(OperationCompleted); !w.op.Walked {
		w.op.Status = string(OperationAborted)
	}
	w.finished, w.changed = true, true
}

// walk handles the next jobs.
func (w *work) walk(ctx context.Context) error {
	ids, err := w.next(ctx)
	if err != nil {
		return err
	}
	w.changed = true
	if len(ids) == 0 {
		return nil
	}
	jobs, err := w.q.OperationJobsLock(ctx, gen.OperationJobsLockParams{JobIDs: ids, Owner: w.op.OwnerID})
	if err != nil {
		return err
	}
	awaited, err := w.q.CallbacksInTheWay(ctx, ids)
	if err != nil {
		return err
	}
	closed, replaced, err := w.kept(ctx, ids, jobs)
	if err != nil {
		return err
	}
	free := slices.DeleteFunc(slices.Clone(ids), func(id uuid.UUID) bool {
		return slices.Contains(awaited, id) || slices.Contains(closed, id) || slices.Contains(replaced, id)
	})
	kept, err := w.q.OperationCommandsKeep(ctx, gen.OperationCommandsKeepParams{
		Command: w.op.Command, JobIDs: free, Allowed: shelves.Texts(commandstore.Allows(w.op.Command)), ByWhom: w.op.ByWhom,
		RunAt: w.op.RunAt, OperationID: w.op.OperationID, Owner: w.op.OwnerID,
	})
	if err != nil {
		return err
	}
	numbers := make(map[uuid.UUID]int32, len(kept))
	for _, command := range kept {
		numbers[command.JobID] = command.Number
	}
	found := make(map[uuid.UUID]*gen.OperationJobsLockRow, len(jobs))
	for i, job := range jobs {
		found[job.JobID] = &jobs[i]
		if number := numbers[job.JobID]; number > 0 {
			w.commands = append(w.commands, commandstore.Command{
				JobID: job.JobID, TraceID: job.TraceID, Number: int(number), Command: w.op.Command, By: w.op.ByWhom,
				RunAt: w.op.RunAt, Version: job.Version,
			})
		}
	}
	w.op.Matched += int64(len(ids))
	w.op.Asked += int64(len(kept))
	left := slices.DeleteFunc(ids, func(id uuid.UUID) bool { return numbers[id] > 0 })
	return w.skip(ctx, left, found, awaited, closed, replaced)
}

// kept returns the jobs that must not run again, because their queue is being removed or was, or because a later run of
// their flow has replaced them.
func (w *work) kept(
	ctx context.Context, ids []uuid.UUID, jobs []gen.OperationJobsLockRow,
) (closed, replaced []uuid.UUID, err error) {
	if w.op.Command != jobevent.CommandRetry {
		return nil, nil, nil
	}
	if replaced, err = w.q.JobsReplaced(ctx, ids); err != nil {
		return nil, nil, err
	}
	names := make([]string, len(jobs))
	for i, job := range jobs {
		names[i] = job.Queue
	}
	slices.Sort(names)
	queues, err := w.q.QueuesClosed(ctx, slices.Compact(names))
	for _, job := range jobs {
		if slices.Contains(queues, job.Queue) {
			closed = append(closed, job.JobID)
		}
	}
	return closed, replaced, err
}

// skip records why jobs got no command; awaited are the jobs with an unanswered callback, closed those in a queue that
// is being removed or was, replaced those that a later run of their flow has replaced.
func (w *work) skip(
	ctx context.Context, ids []uuid.UUID, found map[uuid.UUID]*gen.OperationJobsLockRow,
	awaited, closed, replaced []uuid.UUID,
) error {
	pending := map[uuid.UUID]string{}
	if len(ids) > 0 {
		rows, err := w.q.CommandsOfJobs(ctx, ids)
		if err != nil {
			return err
		}
		for _, row := range rows {
			pending[row.JobID] = row.Command
		}
	}
	for _, id := range ids {
		reason := "there is no such job"
		if job := found[id]; job != nil {
			refused := commandstore.RefusedError{Status: jobstate.Status(job.Status)}
			if slices.Contains(commandstore.Allows(w.op.Command), refused.Status) {
				refused.Pending, refused.Callback, refused.Expires = pending[id], slices.Contains(awaited, id), true
				refused.Queue, refused.Replaced = slices.Contains(closed, id), slices.Contains(replaced, id)
			}
			reason = refused.Error()
		}
		w.leaveOut(id, reason)
		w.op.Skipped++
	}
	return nil
}

// next chooses the next jobs and advances the walk behind them.
func (w *work) next(ctx context.Context) (ids []uuid.UUID, err error) {
	if w.filter == nil {
		ids, err = w.q.OperationListed(ctx, gen.OperationListedParams{
			OperationID: w.op.OperationID, AfterID: w.op.AfterID, MaxJobs: operationPage,
		})
		if len(ids) > 0 {
			w.op.AfterID = ids[len(ids)-1]
		}
		w.op.Walked = len(ids) < operationPage
		return ids, err
	}
	seen, err := w.window(ctx)
	if err != nil {
		return nil, err
	}
	if w.op.Walked = seen.Seen < operationWindow; seen.Seen > 0 {
		w.op.AfterID = seen.LastID
	}
	if len(seen.JobIDs) == operationPage && seen.Fit > operationPage { // some matching ones are left
		w.op.AfterID, w.op.Walked = seen.JobIDs[operationPage-1], false
	}
	return seen.JobIDs, nil
}

// walkRoom is how far before its created_at a job's id may be for an operation to find it: ids made by an older
// release have the time of a gateway's wall clock.
const walkRoom = 24 * time.Hour

// window looks at the next jobs. The operation's created_at decides which jobs were accepted before it, not their ids,
// so the walk continues to the last job there is. Later jobs are passed 2,000 at a time, far faster than they are
// accepted.
func (w *work) window(ctx context.Context) (joblist.Seen, error) {
	f := w.filter.Filter
	if len(f.Status) == 0 {
		f.Status = commandstore.Allows(w.op.Command)
	}
	return joblist.List{
		Filter: f, By: w.filter.By, Owner: apidb.OwnerWith(nullable.Value(w.op.OwnerID), w.op.OwnerID == nil),
		AcceptedBy: &w.op.CreatedAt, AfterID: w.op.AfterID, Slack: walkRoom, MostSeen: operationWindow, Max: operationPage,
	}.Oldest(ctx, w.tx)
}

func (w *work) save(ctx context.Context) error {
	if !w.changed {
		return nil
	}
	reasons, err := json.Marshal(w.reasons)
	if err != nil {
		return fmt.Errorf("write reasons: %w", err)
	}
	if len(w.skips) > 0 {
		p := gen.OperationSkipsAddParams{OperationID: w.op.OperationID}
		for _, skip := range w.skips {
			p.JobIDs, p.Reasons = append(p.JobIDs, skip.JobID), append(p.Reasons, skip.Reason)
		}
		if err := w.q.OperationSkipsAdd(ctx, p); err != nil {
			return err
		}
	}
	return w.q.OperationAdvance(ctx, gen.OperationAdvanceParams{
		OperationID: w.op.OperationID, AfterID: w.op.AfterID, Walked: w.op.Walked, Matched: w.op.Matched, Asked: w.op.Asked,
		Applied: w.op.Applied, Refused: w.op.Refused, Skipped: w.op.Skipped, Reasons: reasons, Status: w.op.Status,
		Finished: w.finished,
	})
}
