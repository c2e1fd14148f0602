package schedulestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/cronspec"
	"github.com/jobweaver/jobweaver/shared/nullable"
)

// Errors about schedules.
var (
	ErrNone    error = apierror.New(apierror.ScheduleNotFound, "there is no such schedule")
	ErrChanged error = apierror.New(apierror.PreconditionFailed,
		"the schedule has changed since it was read, or is gone: read it again, and repeat the change")
	ErrExists error = apierror.New(apierror.ScheduleExists,
		"there is a schedule of this name already; PUT replaces it")
	ErrDefined error = apierror.New(apierror.InvalidStateTransition,
		"a task defines the schedule in code: change it there, or pause it")
	ErrSeveralOwners error = &apierror.Error{
		Code: apierror.InvalidJobRequest, Message: "invalid request: ownerId is required",
		Details: []apierror.Detail{{Path: "ownerId", Message: "is required: several owners have a schedule of this name"}},
	}
)

// Schedule is a row: a job request that is submitted again and again.
type Schedule gen.Schedule

func (s *Schedule) spec() (cronspec.Spec, error) {
	asked := apibody.Schedule{Cron: s.Cron, TimeZone: s.TimeZone}
	return asked.Spec(s.AnchorAt)
}

// first returns the first tick at an instant or after it; nil: there is none.
func (s *Schedule) first(spec cronspec.Spec, from time.Time) *time.Time {
	if s.StartAt != nil && s.StartAt.After(from) {
		from = *s.StartAt
	}
	next := spec.Next(from.Add(-time.Nanosecond))
	if next.IsZero() || s.EndAt != nil && next.After(*s.EndAt) {
		return nil
	}
	return &next
}

// Upcoming returns up to n instants at which it fires next; none while it is paused.
func (s *Schedule) Upcoming(n int) []time.Time {
	var ticks []time.Time
	spec, err := s.spec()
	for next := s.NextAt; err == nil && !s.Paused && next != nil && len(ticks) < n; {
		ticks = append(ticks, *next)
		next = s.first(spec, next.Add(time.Nanosecond))
	}
	return ticks
}

// Create stores a valid schedule; ErrExists if its owner has one of that name.
func (s *Store) Create(ctx context.Context, entry *apidb.Audit, owner apidb.Owner, asked apibody.Schedule) (
	made Schedule, err error,
) {
	if err := asked.Belong(owner.Names(asked.Job.OwnerID)); err != nil {
		return made, err
	}
	err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		var ok bool
		made, ok, err = insertSchedule(ctx, q, asked)
		switch {
		case err != nil:
			return err
		case !ok:
			return ErrExists
		}
		entry.SetOwner(made.OwnerID)
		return s.fewSchedules(ctx, q, made.OwnerID)
	})
	return made, apidb.Classify("create schedule", err)
}

// Put stores a valid schedule in place of the one with that name, if there is one. Its jobs and ticks stay. If match is
// not nil, it replaces only a schedule that was last changed at an instant that match accepts; else it returns
// ErrChanged.
func (s *Store) Put(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, asked apibody.Schedule,
	match apidb.Match,
) (kept Schedule, created bool, err error) {
	if err := asked.Belong(owner.Names(asked.Job.OwnerID)); err != nil {
		return kept, false, err
	}
	key := apidb.Key{OwnerID: &asked.Job.OwnerID, Name: asked.Name}
	for range jobstore.InsertTries { // the existing schedule may be gone when it is looked up
		err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
			entry.SetOwner(asked.Job.OwnerID)
			if kept, created, err = insertSchedule(ctx, q, asked); err != nil {
				return err
			}
			if created && match != nil {
				return ErrChanged
			}
			if created {
				return s.fewSchedules(ctx, q, kept.OwnerID)
			}
			before, err := lockSchedule(ctx, q, owner, key)
			if err != nil {
				return err
			}
			if !match.Is(before.UpdatedAt) {
				return ErrChanged
			}
			if before.DefinedBy != nil {
				return ErrDefined
			}
			kept, err = replaceSchedule(ctx, q, before, asked)
			return err
		})
		if !errors.Is(err, ErrNone) {
			break
		}
	}
	return kept, created, apidb.Classify("put schedule", err)
}

func insertSchedule(ctx context.Context, q *gen.Queries, asked apibody.Schedule) (Schedule, bool, error) {
	now, err := q.Now(ctx)
	if err != nil {
		return Schedule{}, false, err
	}
	row, err := newSchedule(asked, now)
	if err != nil {
		return row, false, err
	}
	n, err := q.ScheduleInsert(ctx, gen.ScheduleInsertParams{
		ScheduleID: row.ScheduleID, OwnerID: row.OwnerID, Name: row.Name, Cron: row.Cron, TimeZone: row.TimeZone,
		AnchorAt: row.AnchorAt, Job: row.Job, Overlap: row.Overlap, Missed: row.Missed, Paused: row.Paused,
		StartAt: row.StartAt, EndAt: row.EndAt, NextAt: row.NextAt, DefinedBy: row.DefinedBy,
	})
	if err != nil || n == 0 {
		return row, false, err
	}
	return row, true, q.SchedulesChanged(ctx)
}

// newSchedule returns the row of a request; its ticks begin now.
func newSchedule(asked apibody.Schedule, now time.Time) (Schedule, error) {
	row := Schedule{
		ScheduleID: uuid.Must(uuid.NewV7()), OwnerID: asked.Job.OwnerID, Name: asked.Name, Cron: asked.Cron,
		TimeZone: asked.TimeZone, AnchorAt: now.Truncate(time.Second), Job: asked.JobJSON, Overlap: asked.Overlap,
		Missed: asked.Missed, Paused: asked.Paused, StartAt: asked.StartAt, EndAt: asked.EndAt,
		CreatedAt: now, UpdatedAt: now, DefinedBy: nullable.Text(asked.DefinedBy),
	}
	if asked.StartAt != nil {
		row.AnchorAt = *asked.StartAt
	}
	spec, err := row.spec()
	if err != nil {
		return row, fmt.Errorf("read a valid schedule: %w", err)
	}
	row.NextAt = row.first(spec, now)
	return row, nil
}

func replaceSchedule(ctx context.Context, q *gen.Queries, before Schedule, asked apibody.Schedule) (Schedule, error) {
	clock, err := q.ScheduleBegin(ctx, before.ScheduleID)
	if err != nil {
		return Schedule{}, err
	}
	row, err := newSchedule(asked, clock.At)
	if err != nil {
		return row, err
	}
	if err := row.goOn(ctx, q, before, clock.BeginAt); err != nil {
		return row, err
	}
	row.ScheduleID, row.CreatedAt = before.ScheduleID, before.CreatedAt
	row.LastAt, row.LastJobID = before.LastAt, before.LastJobID
	err = q.ScheduleReplace(ctx, gen.ScheduleReplaceParams{
		ScheduleID: row.ScheduleID, Cron: row.Cron, TimeZone: row.TimeZone, AnchorAt: row.AnchorAt, Job: row.Job,
		Overlap: row.Overlap, Missed: row.Missed, Paused: row.Paused,
		StartAt: row.StartAt, EndAt: row.EndAt, NextAt: row.NextAt, UpdatedAt: row.UpdatedAt,
	})
	if err != nil {
		return row, err
	}
	return row, q.SchedulesChanged(ctx)
}

// goOn makes a new schedule begin where the replaced one stopped. Due ticks that still belong to it fire by its
// policies; the others are recorded as skipped.
func (s *Schedule) goOn(ctx context.Context, q *gen.Queries, before Schedule, begin time.Time) error {
	if before.Cron == s.Cron && s.StartAt == nil && before.StartAt == nil && !before.AnchorAt.After(s.UpdatedAt) {
		s.AnchorAt = before.AnchorAt // @every keeps its anchor
	}
	spec, err := s.spec()
	if err != nil {
		return err
	}
	from, reason := begin, "the schedule was replaced"
	switch resumed := before.Paused && !s.Paused; {
	case resumed:
		reason = "the schedule was paused"
	case before.Cron == s.Cron && before.TimeZone == s.TimeZone && before.NextAt != nil && before.NextAt.Before(from):
		from = *before.NextAt
	}
	s.NextAt = s.first(spec, from)
	if s.NextAt != nil && s.NextAt.Before(begin) {
		begin = *s.NextAt
	}
	return skipUntil(ctx, q, before, begin, reason)
}

// skipUntil records the ticks before an instant that have not fired.
func skipUntil(ctx context.Context, q *gen.Queries, row Schedule, until time.Time, reason string) error {
	spec, err := row.spec()
	if err != nil || row.NextAt == nil {
		return nil // there is nothing to record
	}
	due, more := ticksDue(&row, spec, until.Add(-time.Microsecond), keptTicks)
	log := tickLog{}
	for i, at := range due {
		log.skip(row.ScheduleID, at, withOthers(reason, more && i == 0))
	}
	return log.write(ctx, q)
}

// lockSchedule waits for the transaction that fires the schedule.
func lockSchedule(ctx context.Context, q *gen.Queries, owner apidb.Owner, key apidb.Key) (Schedule, error) {
	found, err := findSchedule(ctx, q, owner, key)
	if err != nil {
		return found, err
	}
	row, err := q.ScheduleLock(ctx, found.ScheduleID)
	if err != nil {
		return found, noSchedule(err)
	}
	return Schedule(row), nil
}

func findSchedule(ctx context.Context, q *gen.Queries, owner apidb.Owner, key apidb.Key) (Schedule, error) {
	key, seen := key.Of(owner)
	if !seen {
		return Schedule{}, ErrNone
	}
	rows, err := q.SchedulesNamed(ctx, gen.SchedulesNamedParams{Name: key.Name, OwnerID: key.OwnerID})
	if err != nil {
		return Schedule{}, err
	}
	row, err := apidb.Named(rows, func(s *gen.Schedule) string { return s.OwnerID }, ErrNone, ErrSeveralOwners)
	return Schedule(row), err
}

// Limit sets how many schedules an owner may have; 0: any number. Concurrent requests may exceed it a little. Limit
// must be called before all other methods.
func (s *Store) Limit(most int) { s.mostSchedules = most }

// fewSchedules runs in the transaction that has inserted one more schedule.
func (s *Store) fewSchedules(ctx context.Context, q *gen.Queries, owner string) error {
	if s.mostSchedules == 0 {
		return nil
	}
	n, err := q.SchedulesCount(ctx, gen.SchedulesCountParams{OwnerID: owner, Most: int32(s.mostSchedules + 1)})
	if err == nil && n > int64(s.mostSchedules) {
		err = &apidb.TooManyError{What: "schedules", Most: s.mostSchedules}
	}
	return err
}
