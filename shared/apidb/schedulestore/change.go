package schedulestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Get returns one schedule; ErrNone if there is none, ErrSeveralOwners if there are two.
func (s *Store) Get(ctx context.Context, owner apidb.Owner, key apidb.Key) (Schedule, error) {
	row, err := findSchedule(ctx, s.q, owner, key)
	return row, apidb.Classify("get schedule", err)
}

// Filter chooses schedules, in the order of names and owners.
type Filter struct {
	OwnerID *string   // nil: all owners whose schedules the caller sees
	After   apidb.Key // the last one of the previous page
	Limit   int
}

// List returns the matching schedules, fewer than the limit if their jobs are large; more reports that others follow.
func (s *Store) List(ctx context.Context, owner apidb.Owner, f Filter) (
	list []Schedule, more bool, err error,
) {
	key, seen := apidb.Key{OwnerID: f.OwnerID}.Of(owner)
	if !seen {
		return nil, false, nil
	}
	p := gen.SchedulesListParams{OwnerID: key.OwnerID, AfterName: f.After.Name, MaxSchedules: int32(f.Limit + 1),
		MaxBytes: apidb.MaxListBytes,
	}
	if f.After.OwnerID != nil {
		p.AfterOwner = *f.After.OwnerID
	}
	rows, err := s.q.SchedulesList(ctx, p)
	if err != nil {
		return nil, false, apidb.Classify("list schedules", err)
	}
	for i, row := range rows {
		if i == f.Limit || string(row.Job) == "null" {
			return list, true, nil
		}
		list = append(list, Schedule{
			ScheduleID: row.ScheduleID, OwnerID: row.OwnerID, Name: row.Name, Cron: row.Cron, TimeZone: row.TimeZone,
			AnchorAt: row.AnchorAt, Job: row.Job, Overlap: row.Overlap, Missed: row.Missed, Paused: row.Paused,
			StartAt: row.StartAt, EndAt: row.EndAt, NextAt: row.NextAt, LastAt: row.LastAt, LastJobID: row.LastJobID,
			CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, DefinedBy: row.DefinedBy,
		})
	}
	return list, false, nil
}

// change locks a schedule and applies a change, if it is the schedule that the client has read; else it returns
// ErrChanged.
func (s *Store) change(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, key apidb.Key, match apidb.Match, what string,
	how func(q *gen.Queries, entry *apidb.Audit, row *Schedule, now time.Time) error,
) (row Schedule, err error) {
	err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		if row, err = lockSchedule(ctx, q, owner, key); err != nil {
			return err
		}
		entry.SetOwner(row.OwnerID)
		if !match.Is(row.UpdatedAt) {
			return ErrChanged
		}
		now, err := q.Now(ctx)
		if err != nil {
			return err
		}
		if err := how(q, entry, &row, now); err != nil {
			return err
		}
		return q.SchedulesChanged(ctx)
	})
	return row, apidb.Classify(what+" schedule", err)
}

// Delete deletes a schedule and its ticks. Its jobs stay.
func (s *Store) Delete(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, key apidb.Key, match apidb.Match,
) error {
	remove := func(q *gen.Queries, _ *apidb.Audit, row *Schedule, _ time.Time) error {
		return q.ScheduleDelete(ctx, row.ScheduleID)
	}
	_, err := s.change(ctx, entry, owner, key, match, "delete", remove)
	return err
}

// Pause stops a schedule until it is resumed.
func (s *Store) Pause(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, key apidb.Key, match apidb.Match,
) (Schedule, error) {
	pause := func(q *gen.Queries, _ *apidb.Audit, row *Schedule, now time.Time) error {
		row.Paused, row.UpdatedAt = true, now
		return q.SchedulePause(ctx, gen.SchedulePauseParams{ScheduleID: row.ScheduleID, Paused: true, NextAt: row.NextAt})
	}
	return s.change(ctx, entry, owner, key, match, "pause", pause)
}

// Resume ends a pause. The ticks of the pause are recorded as skipped.
func (s *Store) Resume(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, key apidb.Key, match apidb.Match,
) (Schedule, error) {
	resume := func(q *gen.Queries, _ *apidb.Audit, row *Schedule, now time.Time) error {
		if !row.Paused {
			return nil
		}
		clock, err := q.ScheduleBegin(ctx, row.ScheduleID)
		if err != nil {
			return err
		}
		if err := skipUntil(ctx, q, *row, clock.BeginAt, "the schedule was paused"); err != nil {
			return err
		}
		spec, err := row.spec()
		if err != nil {
			return fmt.Errorf("read schedule %s: %w", row.ScheduleID, err)
		}
		row.Paused, row.UpdatedAt, row.NextAt = false, now, row.first(spec, clock.BeginAt)
		return q.SchedulePause(ctx, gen.SchedulePauseParams{ScheduleID: row.ScheduleID, Paused: false, NextAt: row.NextAt})
	}
	return s.change(ctx, entry, owner, key, match, "resume", resume)
}

// Run makes a job of a schedule now, whatever its cron expression. A job that the rules refuse is returned as the
// *apierror.Error of jobspec. If a policy of the job decides for a job that exists, that is the one returned, with the
// name of the policy.
func (s *Store) Run(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, key apidb.Key, match apidb.Match, rules Rules,
) (created jobevent.Created, decidedBy string, err error) {
	var jobs []jobstore.NewJob
	var accepted []jobstore.Accepted
	run := func(q *gen.Queries, entry *apidb.Audit, row *Schedule, now time.Time) error {
		if err := row.Open(rules.Sealer); err != nil {
			return err
		}
		req, err := row.request(rules)
		if err != nil {
			return err
		}
		if now = now.In(time.UTC); now.Equal(now.Truncate(time.Second)) {
			now = now.Add(time.Microsecond) // whole seconds are reserved for ticks
		}
		jobs = []jobstore.NewJob{row.newJob(s.db.NewIDAt(now), req, now, rules)}
		if accepted, err = jobstore.InsertInTx(ctx, q, jobs); err != nil {
			return err
		}
		if accepted[0].Late != nil {
			return accepted[0].Late
		}
		created, decidedBy = accepted[0].Created(jobs[0]), accepted[0].DecidedBy
		if entry != nil {
			entry.JobIDs = []uuid.UUID{created.JobID}
		}
		log, moved := tickLog{}, scheduleMoves{}
		moved.add(row.ScheduleID, row.NextAt)
		if decidedBy != "" {
			log.skip(row.ScheduleID, now, hasKey(accepted[0]))
		} else {
			log.fire(row.ScheduleID, now, created.JobID, "manual")
			moved.fired(row.ScheduleID, now, created.JobID)
		}
		return errors.Join(log.write(ctx, q), moved.write(ctx, q))
	}
	_, err = s.change(ctx, entry, owner, key, match, "run", run)
	if err == nil {
		s.jobs.CountAccepted(jobs, accepted)
	}
	return created, decidedBy, err
}

// Tick is a recorded tick.
type Tick struct {
	At         time.Time
	Outcome    string // fired or skipped
	Reason     string
	JobID      *uuid.UUID
	RecordedAt time.Time
}

// Ticks returns a schedule's ticks before an instant, newest first; more reports that others follow.
func (s *Store) Ticks(ctx context.Context, owner apidb.Owner, key apidb.Key, before time.Time, limit int) (
	ticks []Tick, more bool, err error,
) {
	row, err := findSchedule(ctx, s.q, owner, key)
	if err != nil {
		return nil, false, apidb.Classify("get schedule", err)
	}
	rows, err := s.q.TicksList(ctx, gen.TicksListParams{
		ScheduleID: row.ScheduleID, BeforeAt: before, MaxTicks: int32(limit + 1),
	})
	if err != nil {
		return nil, false, apidb.Classify("list ticks", err)
	}
	rows, more = apidb.Cut(rows, limit)
	for _, row := range rows {
		ticks = append(ticks, Tick(row))
	}
	return ticks, more, nil
}

func noSchedule(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNone
	}
	return err
}

// forgetPage is how many schedules one statement handles when it deletes ticks.
const forgetPage = 100

// DeleteOldTicks deletes ticks that are older than thirty days or beyond a schedule's last thousand, of the schedules
// after one. last is where to continue; uuid.Nil after all of them.
func (s *Store) DeleteOldTicks(ctx context.Context, after uuid.UUID) (last uuid.UUID, err error) {
	ids, err := s.q.TicksForget(ctx, gen.TicksForgetParams{AfterID: after, MaxSchedules: forgetPage})
	if err != nil || len(ids) < forgetPage {
		return uuid.Nil, apidb.Classify("forget ticks", err)
	}
	return ids[len(ids)-1], nil
}
