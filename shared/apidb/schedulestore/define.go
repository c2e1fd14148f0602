package schedulestore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// Define makes the schedules that a job type defines those of a list, all or none. One that has not changed goes on
// untouched, a changed one keeps its pause, and one that is not in the list any more is deleted. A schedule that a
// request has made, or another type defines, is refused with ErrExists. Their jobs must belong to the owner.
func (s *Store) Define(
	ctx context.Context, entry *apidb.Audit, owner, jobType string, all []apibody.Schedule, sealer *sealing.Sealer,
) error {
	all = slices.SortedFunc(slices.Values(all), func(a, b apibody.Schedule) int { return cmp.Compare(a.Name, b.Name) })
	err := apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		entry.SetSubject(owner, "job-type/"+jobType)
		names := make([]string, len(all))
		changed := false
		for i, asked := range all { // in one order, so that two workers that start do not wait for each other
			names[i] = asked.Name
			is, err := s.define(ctx, q, owner, asked, sealer)
			if err != nil {
				return err
			}
			changed = changed || is
		}
		gone, err := q.SchedulesUndefine(ctx, gen.SchedulesUndefineParams{
			OwnerID: owner, DefinedBy: &jobType, Names: names,
		})
		if err != nil || gone == 0 && !changed {
			return err
		}
		return q.SchedulesChanged(ctx)
	})
	return apidb.Classify("define schedules of "+jobType, err)
}

// define stores one of the schedules. changed is false if it is there already.
func (s *Store) define(
	ctx context.Context, q *gen.Queries, owner string, asked apibody.Schedule, sealer *sealing.Sealer,
) (changed bool, err error) {
	plain := asked.JobJSON
	asked.JobJSON = sealer.Seal(sealing.OfSchedule(asked.Name, owner), plain)
	if _, created, err := insertSchedule(ctx, q, asked); err != nil {
		return false, err
	} else if created {
		return true, s.fewSchedules(ctx, q, owner)
	}
	before, err := lockSchedule(ctx, q, apidb.OwnerOf(owner), apidb.Key{OwnerID: &owner, Name: asked.Name})
	switch {
	case err != nil:
		return false, err
	case before.DefinedBy == nil || *before.DefinedBy != asked.DefinedBy:
		return false, ErrExists
	}
	asked.Paused = before.Paused
	opened := before
	if err := opened.Open(sealer); err == nil && opened.isLike(asked, plain) {
		return false, nil
	} else if err != nil && !errors.Is(err, sealing.ErrNoKey) {
		return false, err
	}
	_, err = replaceSchedule(ctx, q, before, asked)
	return true, err
}

// isLike reports whether an opened schedule fires as a request asks, with the same job.
func (s *Schedule) isLike(asked apibody.Schedule, job []byte) bool {
	same := func(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }
	return s.Cron == asked.Cron && s.TimeZone == asked.TimeZone &&
		s.Overlap == asked.Overlap && s.Missed == asked.Missed &&
		same(s.StartAt, asked.StartAt) && same(s.EndAt, asked.EndAt) && bytes.Equal(s.Job, job)
}
