package schedulerdb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// lockedJob is a job whose row is locked, with the transitions that a batch has made so far.
type lockedJob struct {
	jobstate.Job
	spec        jobevent.Spec
	row         gen.JobsLockRow
	transitions []jobevent.Transition
	dueAt       time.Time
	deadlineAt  time.Time
	lastCommand json.RawMessage
	lastError   jobevent.Error
	output      json.RawMessage
	workerID    string
	startedAt   time.Time
	blockedBy   string
	changed     bool
	amended     bool            // a change command has changed the request
	payload     json.RawMessage // changed by it; nil: unchanged
}

func lockJobs(ctx context.Context, q *gen.Queries, ids []uuid.UUID) (map[uuid.UUID]*lockedJob, error) {
	jobs := map[uuid.UUID]*lockedJob{}
	if len(ids) == 0 {
		return jobs, nil
	}
	rows, err := q.JobsLock(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("lock jobs: %w", err)
	}
	for _, row := range rows {
		spec, err := jobevent.ReadSpec(row.Spec)
		if err != nil {
			return nil, fmt.Errorf("lock job %s: %w", row.JobID, err)
		}
		jobs[row.JobID] = &lockedJob{
			spec: spec,
			Job: jobstate.Job{
				Status: jobstate.Status(row.Status), Attempt: int(row.Attempt), RetryCount: int(row.RetryCount),
				MaxRetryCount: spec.MaxRetryCount, LostCount: int(row.LostCount),
				CancelRequested: row.CancelRequestedAt != nil, CommandSeq: int(row.CommandSeq), Deleted: row.DeletedAt != nil,
				FanOut: row.Queue == jobevent.FanOutQueue,
			},
			row: row, lastCommand: row.LastCommand, dueAt: nullable.Value(row.DueAt),
			deadlineAt: nullable.Value(row.CallbackDeadlineAt), blockedBy: nullable.Value(row.BlockedBy),
		}
	}
	return jobs, nil
}

// lockAnyJobs is lockJobs also for completed jobs, which it moves back to jobs first: if a transaction looked for them
// while it has other jobs locked, it could deadlock with another one that does so. If a job completes between the two
// statements, the error is errMoved: the transaction has to be tried again.
func lockAnyJobs(ctx context.Context, q *gen.Queries, ids []uuid.UUID) (map[uuid.UUID]*lockedJob, error) {
	if err := reviveJobs(ctx, q, ids); err != nil {
		return nil, err
	}
	jobs, err := lockJobs(ctx, q, ids)
	if err != nil {
		return nil, err
	}
	missing := slices.DeleteFunc(slices.Clone(ids), func(id uuid.UUID) bool { return jobs[id] != nil })
	if len(missing) == 0 {
		return jobs, nil
	}
	moved, err := snapshots(ctx, q, missing)
	if err != nil {
		return nil, err
	}
	if len(moved) > 0 {
		return nil, errMoved
	}
	return jobs, nil
}

// reviveJobs moves completed jobs back to jobs.
func reviveJobs(ctx context.Context, q *gen.Queries, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	ids = slices.Clone(ids)
	slices.SortFunc(ids, compareIDs) // rows are locked in this order
	blocks := membersNamed(ids)
	err := q.EndedMembersLeave(ctx, gen.EndedMembersLeaveParams{BlockIDs: blocks.FromIDs, Wanted: blocks.Wanted})
	if err != nil {
		return fmt.Errorf("give jobs that completed in cohorts rows of their own: %w", err)
	}
	if err := q.JobsRevive(ctx, ids); err != nil {
		return fmt.Errorf("move completed jobs back: %w", err)
	}
	return nil
}

var errMoved = errors.New("a job has completed meanwhile")

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

// outcome applies one outcome. If a cancel is pending, the outcome answers it.
func (j *lockedJob) outcome(by string, o Outcome, maxLost int) {
	next, ok := j.Apply(jobstate.Outcome{
		Attempt: o.Attempt, Kind: o.Kind, Retryable: o.Retryable, Callback: o.WorkerID == "",
	}, maxLost)
	if !ok {
		return
	}
	transition := jobevent.Transition{
		Attempt: o.Attempt, By: by, Outcome: string(o.Kind), WorkerID: o.ranBy(),
		StartedAt: jobevent.UTC(o.StartedAt), FinishedAt: jobevent.UTC(o.FinishedAt),
		ErrorCode: o.ErrorCode, Message: o.Message,
	}
	if o.Kind == jobstate.KindCompleted && j.CancelRequested {
		j.lastCommand = mustJSON(jobevent.CommandResult{
			Number: j.CommandSeq, Command: jobevent.CommandCancel, Reason: "the attempt had completed",
		})
	}
	j.transition(next, transition)
	j.ended(o)
	if o.ErrorCode != "" {
		j.lastError = jobevent.Error{ErrorCode: o.ErrorCode, Message: o.Message}
	}
	switch next.Status {
	case jobstate.Retrying, jobstate.Scheduled:
		j.dueAt = j.row.At.Add(j.delay(next, o))
	case jobstate.Waiting:
		j.deadlineAt = j.row.At.Add(o.CallbackTimeout)
		j.dueAt = j.deadlineAt.Add(callbackGrace)
	case jobstate.Pending, jobstate.Queued, jobstate.Running, jobstate.Completed, jobstate.Failed, jobstate.Cancelled:
	}
}

// ended copies the worker, the start and the output from the outcome. A callback has neither worker nor start: then the
// known values stay.
func (j *lockedJob) ended(o Outcome) {
	j.output = o.Output
	if o.WorkerID != "" {
		j.workerID = o.WorkerID
	}
	if at := nullable.Value(o.StartedAt); !at.IsZero() {
		j.startedAt = at
	}
}

// suspectAtMost bounds the delay before a suspect's next attempt.
const suspectAtMost = 5 * time.Minute

// suspectDelay returns a random part of 10 s after the second loss in a row, and of twice as much after each further
// one. So jobs that were lost together, because one of them killed their worker, come back one by one.
// Why suspects run apart: docs/decisions/dispatch.md#suspects-run-apart
func suspectDelay(lostCount int) time.Duration {
	return rand.N(min(5*time.Second<<min(lostCount-1, 10), suspectAtMost))
}

// delay returns how long the job waits for its next attempt: the time that the handler asked for, or that of its retry
// policy.
func (j *lockedJob) delay(next jobstate.Job, o Outcome) time.Duration {
	if o.Kind == jobstate.KindLost && next.Status == jobstate.Scheduled {
		return suspectDelay(next.LostCount)
	}
	if o.RetryAfter > 0 || next.Status != jobstate.Retrying {
		return o.RetryAfter
	}
	return j.spec.RetryPolicy.Delay(next.RetryCount, rand.Float64)
}

// command applies one command.
func (j *lockedJob) command(c jobevent.Command) {
	c.Command, c.By = jobevent.CleanText(c.Command, nameMost), jobevent.CleanText(c.By, nameMost)
	asked := jobstate.Command(c.Command)
	if asked == jobstate.Reschedule && c.By == jobevent.ByWait {
		asked = jobstate.Wake
	}
	next, answer, isNew := j.Command(c.Number, asked)
	if !isNew {
		return
	}
	j.lastCommand = mustJSON(jobevent.CommandResult{
		Number: c.Number, Command: c.Command, Applied: answer.Applied, Reason: answer.Reason,
	})
	transition := jobevent.Transition{Attempt: j.Attempt, By: c.By, Reason: c.Command}
	if !answer.Applied {
		transition.Reason += " refused: " + answer.Reason
	}
	if j.Status == jobstate.Waiting && next.Status == jobstate.Cancelled {
		transition.Outcome, transition.ErrorCode = string(jobstate.KindCancelled), "WORKER.CANCELLED"
	}
	if answer.Applied && c.Command == jobevent.CommandChange && c.Change.RunAt != nil {
		next.Status = jobstate.Scheduled // as by a reschedule
	}
	j.transition(next, transition)
	switch {
	case answer.Applied && next.Status == jobstate.Waiting: // a fan-out is retried
		j.dueAt, j.deadlineAt = noDeadline, noDeadline
	case !answer.Applied:
	case c.Command == jobevent.CommandReschedule:
		j.putOff(*c.RunAt)
	case c.Command == jobevent.CommandChange:
		j.change(*c.Change)
	}
}

func (j *lockedJob) putOff(until time.Time) {
	j.dueAt = until
	if j.dueAt.Before(j.row.At) {
		j.dueAt = j.row.At // due at once, but behind jobs that have waited longer
	}
}

// change changes values of the request. A new priority moves the job's rank, which keeps the time that the job has
// waited.
func (j *lockedJob) change(c jobevent.Change) {
	j.amended = true
	if c.Queue != "" {
		j.row.Queue = c.Queue
	}
	if c.Payload != nil {
		j.payload = c.Payload
	}
	if c.Spec != nil {
		before := j.spec.Priority
		j.spec, _ = j.spec.Change(c.Spec) // checkCommand has read it
		j.row.Rank, j.MaxRetryCount = dispatch.Rank(j.row.Rank, j.spec.Priority-before), j.spec.MaxRetryCount
	}
	if c.ExpiresAt != nil || c.NeverExpires {
		j.row.ExpiresAt = c.ExpiresAt
	}
	if c.RunAt != nil {
		j.putOff(*c.RunAt)
	}
}

// changeJobs writes the requests that commands have changed. saveJobs must follow: it raises the versions.
func changeJobs(ctx context.Context, q *gen.Queries, jobs map[uuid.UUID]*lockedJob) error {
	var p gen.JobsChangeParams
	for _, j := range jobs {
		if !j.amended || j.Deleted {
			continue
		}
		p.JobIDs = append(p.JobIDs, j.row.JobID)
		p.OldVersions = append(p.OldVersions, j.row.Version)
		p.Queues = append(p.Queues, j.row.Queue)
		p.Payloads = append(p.Payloads, j.payload)
		p.Specs = append(p.Specs, j.spec.Bytes())
		p.ExpiresAts = append(p.ExpiresAts, nullable.Value(j.row.ExpiresAt))
	}
	if len(p.JobIDs) == 0 {
		return nil
	}
	if err := q.JobsChange(ctx, p); err != nil {
		return fmt.Errorf("change jobs: %w", err)
	}
	return nil
}

func (j *lockedJob) transition(next jobstate.Job, t jobevent.Transition) {
	t.At, t.From, t.To = j.row.At.UTC(), string(j.Status), string(next.Status)
	if t.From != t.To {
		j.dueAt, j.deadlineAt = time.Time{}, time.Time{}
	}
	switch {
	case next.Status.Terminal():
		j.blockedBy = ""
	case j.Status.Terminal() && j.row.OrderingKey != nil: // another job of its key may have the turn meanwhile
		j.blockedBy = dispatch.ByOrder
	}
	j.Job, j.transitions, j.changed = next, append(j.transitions, t), true
}

// saveJobs writes the changed jobs and returns their new state.
func saveJobs(
	ctx context.Context, q *gen.Queries, jobs map[uuid.UUID]*lockedJob, delta *dispatch.Delta,
) ([]emit.Snapshot, error) {
	var p gen.JobsSaveParams
	var gone gen.JobsDeleteParams
	for _, j := range slices.SortedFunc(maps.Values(jobs), func(a, b *lockedJob) int {
		return slices.Compare(a.row.JobID[:], b.row.JobID[:])
	}) {
		j.noteIn(delta)
		isDeleted := j.changed && j.Deleted
		if j.changed && !(isDeleted && j.Status == jobstate.Status(j.row.Status)) {
			j.addTo(&p)
		}
		if isDeleted {
			j.addToDeleted(&gone)
		}
	}
	var saved []emit.Snapshot
	if len(p.JobIDs) > 0 {
		rows, err := q.JobsSave(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("save jobs: %w", err)
		}
		saved = snapshotsOf(rows)
	}
	if len(gone.JobIDs) == 0 {
		return saved, nil
	}
	return deleteJobs(ctx, q, gone, saved)
}

// deleteJobs reduces ended jobs to tombstones, whose snapshots replace the other snapshots of these jobs.
func deleteJobs(
	ctx context.Context, q *gen.Queries, gone gen.JobsDeleteParams, saved []emit.Snapshot,
) ([]emit.Snapshot, error) {
	rows, err := q.JobsDelete(ctx, gone)
	if err != nil {
		return nil, fmt.Errorf("delete jobs: %w", err)
	}
	saved = slices.DeleteFunc(saved, func(job emit.Snapshot) bool { return slices.Contains(gone.JobIDs, job.JobID) })
	for _, row := range rows {
		saved = append(saved, deletedSnapshot(row))
	}
	return saved, nil
}

// noteIn enters the effects of the job's transitions on dispatching into the delta. It also enters a job that waited
// and still waits: a transaction that dispatched while the job was locked has skipped it.
func (j *lockedJob) noteIn(delta *dispatch.Delta) {
	was := jobstate.Status(j.row.Status)
	for _, t := range j.transitions {
		if t.From != t.To && t.To != string(jobstate.Pending) { // the clock makes most of these, and counts none
			delta.NoteTransition(j.row.JobType, jobstate.Status(t.To), 1)
		}
	}
	key, isOrdered := dispatch.KeyOf(j.row.OrderingKey, j.row.OwnerID)
	switch {
	case j.Status.Terminal() && !was.Terminal():
		delta.NoteEnded(j.row.JobID, j.row.OrderingKey, j.row.OwnerID)
	case isOrdered && j.blockedBy != "": // it waits for the turn, or has to yield it
		delta.NoteTurn(key)
	case j.Status == jobstate.Pending && j.blockedBy == "":
		delta.NoteWaiting(j.row.Queue, nullable.Value(j.row.Lane), j.row.FairnessKey, j.rank())
	}
	if was.InFlight() && !j.Status.InFlight() {
		delta.NoteOut(j.row.Queue, nullable.Value(j.row.WorkerID), nullable.Value(j.row.Partition), -1)
		delta.NoteRunning(classOf(j.row.Queue, j.row.JobType, j.row.OwnerID, j.row.FairnessKey), -1)
	}
	if j.changed && !j.dueAt.IsZero() {
		delta.NoteDue(j.dueAt)
	}
	if at, expires := j.expiry(); expires && j.changed {
		delta.NoteDue(at)
	}
}

// expiry returns the instant at which the job is cancelled unless it has started. A job that was retried after its end
// does not expire.
func (j *lockedJob) expiry() (at time.Time, expires bool) {
	isReady := j.Status == jobstate.Scheduled || j.Status == jobstate.Pending
	if j.row.ExpiresAt == nil || !isReady || jobstate.Status(j.row.Status).Terminal() ||
		j.row.StartedAt != nil || !j.startedAt.IsZero() {
		return time.Time{}, false
	}
	return *j.row.ExpiresAt, true
}

// rank returns the job's rank in its queue. A lost or interrupted job keeps its rank; an ended job that is retried gets
// a new one.
func (j *lockedJob) rank() time.Time {
	if was := jobstate.Status(j.row.Status); j.Status == jobstate.Pending && was.Terminal() {
		return dispatch.Rank(j.row.At, j.spec.Priority)
	}
	return j.row.Rank
}

func (j *lockedJob) addTo(p *gen.JobsSaveParams) {
	p.JobIDs = append(p.JobIDs, j.row.JobID)
	p.OldVersions = append(p.OldVersions, j.row.Version)
	p.Statuses = append(p.Statuses, string(j.Status))
	p.RetryCounts = append(p.RetryCounts, int16Of(j.RetryCount))
	p.LostCounts = append(p.LostCounts, int16Of(j.LostCount))
	p.DueAts = append(p.DueAts, j.dueAt)
	p.CallbackDeadlineAts = append(p.CallbackDeadlineAts, j.deadlineAt)
	p.CancelRequested = append(p.CancelRequested, j.CancelRequested)
	p.CommandSeqs = append(p.CommandSeqs, int32Of(j.CommandSeq))
	p.LastCommands = append(p.LastCommands, j.lastCommand)
	p.Ranks = append(p.Ranks, j.rank())
	last := j.transitions[max(0, len(j.transitions)-maxEntries):]
	p.Entries = append(p.Entries, entriesOf(last))
	p.Moves = append(p.Moves, int16Of(len(last)))
	p.Outputs = append(p.Outputs, j.output)
	p.ErrorCodes = append(p.ErrorCodes, j.lastError.ErrorCode)
	p.ErrorMessages = append(p.ErrorMessages, j.lastError.Message)
	p.WorkerIDs = append(p.WorkerIDs, j.workerID)
	p.StartedAts = append(p.StartedAts, j.startedAt)
	p.BlockedBys = append(p.BlockedBys, j.blockedBy)
}

func (j *lockedJob) addToDeleted(p *gen.JobsDeleteParams) {
	p.JobIDs = append(p.JobIDs, j.row.JobID)
	p.CommandSeqs = append(p.CommandSeqs, int32Of(j.CommandSeq))
	p.Entries = append(p.Entries, entriesOf(j.transitions[len(j.transitions)-1:]))
}

// maxEntries is how many entries of a history the database keeps.
const maxEntries = 100

// entriesOf encodes transitions as entries of a history.
func entriesOf(transitions []jobevent.Transition) string {
	var b []byte
	for i, transition := range transitions {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendTransition(b, transition)
	}
	return string(b)
}

func appendTransition(b []byte, transition jobevent.Transition) []byte {
	text, err := jobevent.Encode(transition)
	if err != nil {
		panic("encode a transition: " + err.Error()) // its outcome has an instant beyond the year 9999
	}
	return append(b, text...)
}

// unknownAt is the beginning of an encoded transition whose instant and old state only the statement knows.
const unknownAt = `{"at":"0001-01-01T00:00:00Z",`

// appendEnd appends such a transition without its beginning.
func appendEnd(b []byte, transition jobevent.Transition) []byte {
	begin := len(b)
	b = appendTransition(b, transition)
	return append(b[:begin], b[begin+len(unknownAt):]...)
}
