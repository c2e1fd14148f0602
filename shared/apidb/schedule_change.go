package apidb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Schedule gives one schedule; ErrNoSchedule when there is none, ErrSeveralOwners when there are two.
func (s *Store) Schedule(ctx context.Context, owner Owner, key ScheduleKey) (Schedule, error) {
	row, err := findSchedule(ctx, s.q, owner, key)
	return row, Classify("get schedule", err)
}

// ScheduleFilter chooses schedules, in the order of names and owners.
type ScheduleFilter struct {
	OwnerID *string     // nil: of all owners whose schedules one sees
	After   ScheduleKey // the last one of the page before
	Limit   int
}

// ListSchedules gives the schedules that fit, fewer than it may where their jobs are large; more: there are others
// after them.
func (s *Store) ListSchedules(ctx context.Context, owner Owner, f ScheduleFilter) (
	list []Schedule, more bool, err error,
) {
	key, err := ScheduleKey{OwnerID: f.OwnerID}.of(owner)
	if err != nil {
		return nil, false, nil
	}
	f.OwnerID = key.OwnerID
	p := gen.SchedulesListParams{OwnerID: f.OwnerID, AfterName: f.After.Name, MaxSchedules: int32(f.Limit + 1),
		MaxBytes: maxListBytes,
	}
	if f.After.OwnerID != nil {
		p.AfterOwner = *f.After.OwnerID
	}
	rows, err := s.q.SchedulesList(ctx, p)
	if err != nil {
		return nil, false, Classify("list schedules", err)
	}
	for i, row := range rows {
		if i == f.Limit || string(row.Job) == "null" {
			return list, true, nil
		}
		list = append(list, Schedule{
			ScheduleID: row.ScheduleID, OwnerID: row.OwnerID, Name: row.Name, Cron: row.Cron, TimeZone: row.TimeZone,
			AnchorAt: row.AnchorAt, Job: row.Job, Overlap: row.Overlap, Missed: row.Missed, Paused: row.Paused,
			StartAt: row.StartAt, EndAt: row.EndAt, NextAt: row.NextAt, LastAt: row.LastAt, LastJobID: row.LastJobID,
			CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
		})
	}
	return list, false, nil
}

// change locks a schedule and has it changed.
func (s *Store) change(
	ctx context.Context, owner Owner, key ScheduleKey, what string,
	how func(q *gen.Queries, row *Schedule, now time.Time) error,
) (row Schedule, err error) {
	err = AuditedTx(ctx, s, func(q *gen.Queries) error {
		if row, err = lockSchedule(ctx, q, owner, key); err != nil {
			return err
		}
		now, err := q.Now(ctx)
		if err != nil {
			return err
		}
		if err := how(q, &row, now); err != nil {
			return err
		}
		return q.SchedulesChanged(ctx)
	})
	return row, Classify(what+" schedule", err)
}

// DeleteSchedule forgets a schedule and its ticks. Its jobs stay.
func (s *Store) DeleteSchedule(ctx context.Context, owner Owner, key ScheduleKey) error {
	_, err := s.change(ctx, owner, key, "delete", func(q *gen.Queries, row *Schedule, _ time.Time) error {
		return q.ScheduleDelete(ctx, row.ScheduleID)
	})
	return err
}

// PauseSchedule has a schedule fire no more until it is resumed.
func (s *Store) PauseSchedule(ctx context.Context, owner Owner, key ScheduleKey) (Schedule, error) {
	return s.change(ctx, owner, key, "pause", func(q *gen.Queries, row *Schedule, now time.Time) error {
		row.Paused, row.UpdatedAt = true, now
		return q.SchedulePause(ctx, gen.SchedulePauseParams{ScheduleID: row.ScheduleID, Paused: true, NextAt: row.NextAt})
	})
}

// ResumeSchedule has it fire again. The ticks of the pause are recorded as skipped.
func (s *Store) ResumeSchedule(ctx context.Context, owner Owner, key ScheduleKey) (Schedule, error) {
	return s.change(ctx, owner, key, "resume", func(q *gen.Queries, row *Schedule, now time.Time) error {
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
	})
}

// RunSchedule makes a job of a schedule now, whatever its cron says. A job that the rules refuse is the
// *apierror.Error of jobspec.
func (s *Store) RunSchedule(ctx context.Context, owner Owner, key ScheduleKey, rules ScheduleRules) (
	created jobevent.Created, err error,
) {
	var jobs []NewJob
	var accepted []Accepted
	_, err = s.change(ctx, owner, key, "run", func(q *gen.Queries, row *Schedule, now time.Time) error {
		if err := row.Open(rules.Sealer); err != nil {
			return err
		}
		req, err := row.request(rules)
		if err != nil {
			return err
		}
		if now = now.In(time.UTC); now.Equal(now.Truncate(time.Second)) {
			now = now.Add(time.Microsecond) // whole seconds are the ticks'
		}
		jobs = []NewJob{row.newJob(s.ids.next(now), req, now, rules)}
		if accepted, err = insertTick(ctx, q, jobs); err != nil {
			return err
		}
		created = accepted[0].Created(jobs[0])
		SetAuditJob(ctx, created.JobID)
		log, moved := tickLog{}, scheduleMoves{}
		log.fire(row.ScheduleID, now, created.JobID, "manual")
		moved.add(row.ScheduleID, row.NextAt)
		moved.fired(row.ScheduleID, now, created.JobID)
		return errors.Join(log.write(ctx, q), moved.write(ctx, q))
	})
	if err == nil {
		s.accepts.count(jobs, accepted)
	}
	return created, err
}

// Tick is what became of one.
type Tick struct {
	At         time.Time
	Outcome    string // fired or skipped
	Reason     string
	JobID      *uuid.UUID
	RecordedAt time.Time
}

// Ticks gives a schedule's ticks before an instant, newest first; more: there are others after them.
func (s *Store) Ticks(ctx context.Context, owner Owner, key ScheduleKey, before time.Time, limit int) (
	ticks []Tick, more bool, err error,
) {
	row, err := findSchedule(ctx, s.q, owner, key)
	if err != nil {
		return nil, false, Classify("get schedule", err)
	}
	rows, err := s.q.TicksList(ctx, gen.TicksListParams{
		ScheduleID: row.ScheduleID, BeforeAt: before, MaxTicks: int32(limit + 1),
	})
	if err != nil {
		return nil, false, Classify("list ticks", err)
	}
	if more = len(rows) > limit; more {
		rows = rows[:limit]
	}
	for _, row := range rows {
		ticks = append(ticks, Tick(row))
	}
	return ticks, more, nil
}

func noSchedule(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNoSchedule
	}
	return err
}
