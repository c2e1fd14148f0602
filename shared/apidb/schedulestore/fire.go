package schedulestore

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
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// firing is one pass.
type firing struct {
	tx    pgx.Tx
	q     *gen.Queries
	newID func(time.Time) uuid.UUID
	rules Rules
	most  int32
	held  []uuid.UUID
	now   time.Time

	pace    *pace
	resting []string // owners

	took    []uuid.UUID
	due     []dueJob
	cancels []uuid.UUID
	log     tickLog
	moved   scheduleMoves
	bytes   int
	owners  map[string]*ownersRoom
	full    bool // more is due than this pass handles

	cancelAgain bool // a job to be cancelled has an unanswered command or callback
	jobs        []jobstore.NewJob
	accepted    []jobstore.Accepted
	fired       Fired
}

// ownersRoom is the part of a pass that an owner has used.
type ownersRoom struct{ jobs, bytes int }

// dueJob is a tick that fires.
type dueJob struct {
	schedule uuid.UUID
	at       time.Time
	job      jobstore.NewJob
	cancels  []uuid.UUID // the jobs that are cancelled for it
}

func (f *firing) run(ctx context.Context) error {
	var err error
	if f.now, err = f.q.Now(ctx); err != nil {
		return err
	}
	rows, err := f.q.SchedulesDue(ctx, gen.SchedulesDueParams{
		HeldIDs: f.held, RestingOwners: f.resting, MaxSchedules: f.most,
	})
	if err != nil {
		return fmt.Errorf("take due schedules: %w", err)
	}
	f.full = len(rows) == int(f.most)
	for _, row := range rows {
		f.took = append(f.took, row.ScheduleID)
	}
	for _, row := range rows {
		schedule := Schedule(row)
		if err := f.take(ctx, &schedule); err != nil {
			return fmt.Errorf("take schedule %s: %w", row.ScheduleID, err)
		}
	}
	if err := f.insert(ctx); err != nil {
		return err
	}
	if err := f.cancelOld(ctx); err != nil {
		return err
	}
	if err := f.log.write(ctx, f.q); err != nil {
		return fmt.Errorf("record ticks: %w", err)
	}
	return f.moved.write(ctx, f.q)
}

// take decides the ticks of one schedule, as far as there is room for their jobs.
func (f *firing) take(ctx context.Context, row *Schedule) error {
	spec, err := row.spec()
	if err != nil {
		f.log.skip(row.ScheduleID, *row.NextAt, "the schedule cannot be read any more: "+err.Error())
		f.moved.add(row.ScheduleID, nil)
		return nil
	}
	var running []uuid.UUID
	if row.Overlap != apibody.OverlapAllow {
		if running, err = f.q.ScheduleJobsNotEnded(ctx, row.ScheduleID); err != nil {
			return err
		}
	}
	if err := row.Open(f.rules.Sealer); err != nil {
		return err // its key may not have reached this process yet: tried again
	}
	ticks, more := ticksDue(row, spec, f.now, catchUpMost+keptTicks)
	verdicts := decide(row, ticks, more, f.now, len(running) > 0)
	req, err := row.request(f.rules)
	next := row.first(spec, *row.NextAt)
	for _, v := range verdicts {
		switch {
		case v.fire && err != nil:
			f.log.skip(row.ScheduleID, v.at, "the job is refused: "+message(err))
		case v.fire && f.room(row.OwnerID, len(req.Payload)):
			due := dueJob{schedule: row.ScheduleID, at: v.at, job: row.newJob(f.newID(f.now), req, v.at, f.rules)}
			if row.Overlap == apibody.OverlapCancel {
				due.cancels = running
			}
			f.due = append(f.due, due)
		case v.fire:
			f.moved.add(row.ScheduleID, &v.at)
			return nil
		default:
			f.log.skip(row.ScheduleID, v.at, v.why)
		}
		next = row.first(spec, v.at.Add(time.Nanosecond))
	}
	f.moved.add(row.ScheduleID, next)
	return nil
}

// room reports whether another job of an owner fits into the pass, and into the owner's rate. The owner's first job
// fits into the pass if any does.
func (f *firing) room(owner string, size int) bool {
	own := f.owners[owner]
	if own == nil {
		own = &ownersRoom{}
		f.owners[owner] = own
	}
	if len(f.due) > 0 && (len(f.due) >= fireJobs || f.bytes+size > fireBytes) ||
		own.jobs > 0 && (own.jobs >= fireOwnerJobs || own.bytes+size > fireOwnerBytes) {
		f.full = true
		return false
	}
	if !f.pace.take(owner, f.rules.RateLimitJobs) {
		return false
	}
	f.bytes += size
	own.jobs, own.bytes = own.jobs+1, own.bytes+size
	return true
}

// insert inserts the jobs. A job that the database refuses is recorded, and does not hold up the others.
func (f *firing) insert(ctx context.Context) error {
	err := f.insertSome(ctx, f.due)
	if errors.Is(err, jobevent.ErrInvalid) {
		for i := range f.due {
			err = f.insertSome(ctx, f.due[i:i+1])
			if errors.Is(err, jobevent.ErrInvalid) {
				f.log.skip(f.due[i].schedule, f.due[i].at, "the database refuses the job")
				err = nil
			}
			if err != nil {
				break
			}
		}
	}
	return err
}

// insertSome inserts all of the jobs or none.
func (f *firing) insertSome(ctx context.Context, due []dueJob) error {
	if len(due) == 0 {
		return nil
	}
	jobs := make([]jobstore.NewJob, len(due))
	for i := range due {
		jobs[i] = due[i].job
	}
	var accepted []jobstore.Accepted
	err := pgx.BeginFunc(ctx, f.tx, func(inner pgx.Tx) (err error) {
		accepted, err = jobstore.InsertInTx(ctx, gen.New(inner), jobs)
		return err
	})
	if err != nil {
		return pgpool.Classify(fmt.Errorf("insert %d jobs: %w", len(jobs), err))
	}
	f.jobs, f.accepted = append(f.jobs, jobs...), append(f.accepted, accepted...)
	for i, job := range accepted {
		switch {
		case job.Replayed:
			continue // a repeated tick: its job was published before
		case job.DecidedBy != "":
			f.log.skip(due[i].schedule, due[i].at, hasKey(job))
			continue
		case job.Late != nil:
			f.log.skip(due[i].schedule, due[i].at, "the job is refused: "+message(job.Late))
			continue
		}
		f.cancels = append(f.cancels, due[i].cancels...)
		f.log.fire(due[i].schedule, due[i].at, job.JobID, "")
		f.moved.fired(due[i].schedule, due[i].at, job.JobID)
		f.fired.Jobs = append(f.fired.Jobs, job.Created(jobs[i]))
	}
	return nil
}

// hasKey is the reason why a tick made no job: a policy of its request has found an existing one.
func hasKey(job jobstore.Accepted) string {
	return job.DecidedBy + ": job " + job.JobID.String() + " has the key"
}

// cancelOld stores a cancel for each job that must make room, and for jobs of earlier passes that are still to be
// cancelled. All transactions take the jobs in the same order, so that they do not deadlock.
func (f *firing) cancelOld(ctx context.Context) error {
	open, err := f.q.ScheduleCancelsOpen(ctx, cancelsMost)
	if err != nil {
		return fmt.Errorf("look for jobs to cancel: %w", err)
	}
	jobs := slices.Concat(f.cancels, open)
	slices.SortFunc(jobs, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	var waiting, done []uuid.UUID
	for _, id := range slices.Compact(jobs) {
		cancel := commandstore.Command{JobID: id, Command: jobevent.CommandCancel, By: "cron"}
		kept, err := commandstore.KeepCommandInTx(ctx, f.q, apidb.Everyone, cancel, nil)
		var refused *commandstore.RefusedError
		switch {
		case err == nil:
			f.fired.Cancels = append(f.fired.Cancels, kept)
			done = append(done, id)
		case errors.As(err, &refused) && (refused.Pending != "" || refused.Callback):
			waiting = append(waiting, id) // cancelled once that command or callback is answered, unless it has ended
		case errors.As(err, &refused), errors.Is(err, pgx.ErrNoRows):
			done = append(done, id)
		default:
			return fmt.Errorf("cancel job %s: %w", id, err)
		}
	}
	f.cancelAgain = len(waiting) > 0
	if done = slices.DeleteFunc(done, func(id uuid.UUID) bool { return !slices.Contains(open, id) }); len(done) > 0 {
		if err := f.q.ScheduleCancelsDrop(ctx, done); err != nil {
			return fmt.Errorf("forget jobs that were to be cancelled: %w", err)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	return f.q.ScheduleCancelsKeep(ctx, waiting)
}

func (f *firing) next(ctx context.Context, idle time.Duration) (time.Duration, error) {
	if f.full {
		return 0, nil
	}
	if f.cancelAgain {
		idle = min(idle, cancelEvery)
	}
	rows, err := f.q.ScheduleNext(ctx, gen.ScheduleNextParams{HeldIDs: f.held, RestingOwners: f.resting})
	if err != nil || len(rows) == 0 {
		return idle, err
	}
	wait := rows[0].NextAt.Sub(rows[0].At)
	if wait <= 0 && !rows[0].NextAt.After(f.now) {
		return fireAgain, nil // it was due already, but another process has it locked
	}
	return min(max(wait, time.Millisecond), idle), nil
}

// Rules are this installation's limits, and its defaults for fields that a job type leaves out.
type Rules struct {
	jobspec.Rules
	Defaults jobspec.TypeDefaults
	Sealer   *sealing.Sealer

	RateLimitJobs float64 // jobs a second of the schedules of one owner, in this process; 0: any number

	KeepTrace func(traceID uuid.UUID) bool // nil: every trace
}

// request returns the job's request, once the schedule is opened, if the rules still allow it.
func (s *Schedule) request(rules Rules) (jobspec.Request, error) {
	req, err := jobspec.Decode(s.Job)
	if err != nil {
		return req, err
	}
	req.OwnerID = s.OwnerID
	rules.Defaults.FillIn(&req)
	return req, req.Validate(rules.Rules)
}

// newJob returns the job of a tick. It carries the tick as its event, so that no second job can have it.
func (s *Schedule) newJob(id uuid.UUID, req jobspec.Request, at time.Time, rules Rules) jobstore.NewJob {
	traceID := uuid.New()
	copy(traceID[:6], id[:6]) // the same millisecond, so that it needs no entry in jobs_of_trace
	id = jobevent.JobID(id, rules.KeepTrace == nil || rules.KeepTrace(traceID))
	req.Payload = rules.Sealer.Seal(sealing.OfJob(id, sealing.Payload), req.Payload)
	return jobstore.NewJob{
		JobID: id, TraceID: traceID, Request: req, Whose: apidb.Everyone,
		EventSource: jobstore.ScheduleSource + s.ScheduleID.String() + "/" + s.Name,
		EventID:     at.In(time.UTC).Format(time.RFC3339Nano),
	}
}

// message returns an error's text without its code.
func message(err error) string {
	if public := (*apierror.Error)(nil); errors.As(err, &public) {
		return public.Message
	}
	return err.Error()
}
