package schedulestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// Seal seals the jobs of the schedules after one, up to another (uuid.Nil: all), that are not sealed with the key in
// use:
// with an older key, or not at all. Otherwise an old key would be needed for as long as a schedule exists. A job that
// cannot be opened stays as it is; an error names it, after all others are sealed.
func (s *Store) Seal(ctx context.Context, sealer *sealing.Sealer, after, last uuid.UUID) (
	sealed int, err error,
) {
	if sealer == nil {
		return 0, nil
	}
	heads, err := s.q.ScheduleHeads(ctx, gen.ScheduleHeadsParams{AfterID: after, LastID: last})
	if err != nil {
		return 0, apidb.Classify("look for schedules to seal", err)
	}
	var closed error
	for _, row := range heads {
		if !sealer.Stale(json.RawMessage(row.Head)) {
			continue
		}
		done, err := s.sealSchedule(ctx, sealer, row.ScheduleID)
		switch {
		case errors.Is(err, sealing.ErrNoKey), errors.Is(err, sealing.ErrAltered):
			closed = errors.Join(closed, fmt.Errorf("schedule %s: %w", row.ScheduleID, err))
		case err != nil:
			return sealed, apidb.Classify("seal schedule", err)
		case done:
			sealed++
		}
	}
	return sealed, closed
}

// sealSchedule waits for a transaction that replaces or seals the schedule, and reads it again.
func (s *Store) sealSchedule(ctx context.Context, sealer *sealing.Sealer, id uuid.UUID) (done bool, err error) {
	err = s.db.Tx(ctx, func(q *gen.Queries) error {
		locked, err := q.ScheduleLock(ctx, id)
		if err != nil {
			return noSchedule(err)
		}
		row := Schedule(locked)
		if !sealer.Stale(row.Job) {
			return nil
		}
		if err := row.Open(sealer); err != nil {
			return err
		}
		done = true
		job := sealer.Seal(sealing.OfSchedule(row.Name, row.OwnerID), row.Job)
		return q.ScheduleSeal(ctx, gen.ScheduleSealParams{ScheduleID: id, Job: job})
	})
	if errors.Is(err, ErrNone) {
		return false, nil
	}
	return done && err == nil, err
}

// Open opens the schedule's sealed job. On an error the job is null.
func (s *Schedule) Open(sealer *sealing.Sealer) error {
	plain, err := sealer.Open(sealing.OfSchedule(s.Name, s.OwnerID), s.Job)
	s.Job = plain
	return err
}
