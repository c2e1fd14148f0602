package statusstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/idtime"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Gone is a job that the scheduler has deleted at a version.
type Gone struct {
	JobID   uuid.UUID
	Version int64
	End     *jobevent.End // nil: unknown
}

// ForgetJobs deletes jobs with all that is stored about them but their ids, and returns how many there were. If the end
// of a job has not been stored yet, ForgetJobs first counts and delivers it, though without its output.
// Why: docs/decisions/databases.md#a-job-pays-for-no-long-check-and-no-foreign-key
func (s *Store) ForgetJobs(ctx context.Context, gone []Gone) (forgotten int64, err error) {
	gone = slices.Clone(gone)
	slices.SortFunc(gone, func(a, b Gone) int { return slices.Compare(a.JobID[:], b.JobID[:]) })
	p := gen.JobsDeleteParams{JobIDs: make([]uuid.UUID, len(gone)), Versions: make([]int64, len(gone))}
	for i, job := range gone {
		p.JobIDs[i], p.Versions[i] = job.JobID, job.Version
	}
	notify, done := s.db.BeginChange()
	defer done()
	err = s.db.Tx(ctx, func(q *gen.Queries) error {
		if err := applyMissingEnds(ctx, q, gone, p); err != nil {
			return err
		}
		row, err := q.JobsDelete(ctx, p)
		forgotten = row.Deleted
		if err == nil && notify {
			err = apidb.NotifyChange(ctx, q, apidb.ChangeGone, p.JobIDs)
		}
		return err
	})
	return forgotten, apidb.Classify(fmt.Sprintf("forget %d jobs", len(gone)), err)
}

// applyMissingEnds applies the ends of deleted jobs whose last status has not arrived.
func applyMissingEnds(ctx context.Context, q *gen.Queries, gone []Gone, p gen.JobsDeleteParams) error {
	missing, err := q.JobsMissingStatus(ctx, gen.JobsMissingStatusParams(p))
	if err != nil || len(missing) == 0 {
		return err
	}
	var statuses []*PublishedStatus
	for _, job := range gone {
		if job.End == nil || !slices.Contains(missing, job.JobID) {
			continue
		}
		status, err := job.lastStatus()
		if err != nil {
			return err
		}
		statuses = append(statuses, status)
	}
	statuses = slices.CompactFunc(statuses, func(a, b *PublishedStatus) bool { return a.JobID == b.JobID })
	if len(statuses) == 0 {
		return nil
	}
	_, err = q.JobsApplyStatus(ctx, statusParams(statuses))
	return err
}

// lastStatus returns what is known of the job's last status.
func (g Gone) lastStatus() (*PublishedStatus, error) {
	end := g.End
	status := jobevent.Status{
		JobID: g.JobID, Version: g.Version - 1, Status: end.Status, Attempt: end.Attempt,
		FinishedAt: &end.At, UpdatedAt: end.At,
		History: []jobevent.Transition{{
			At: end.At, To: end.Status, Attempt: end.Attempt, By: "projection", ErrorCode: end.ErrorCode,
		}},
	}
	if end.ErrorCode != "" {
		status.LastError = &jobevent.Error{ErrorCode: end.ErrorCode}
	}
	b, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("write the end of job %s: %w", g.JobID, err)
	}
	return &PublishedStatus{Status: status, JSON: b}, nil
}

// Ages are how long ago a job must have ended to be deleted, by how it ended. Zero: it never is.
type Ages struct{ Completed, Failed, Cancelled time.Duration }

// youngest returns the smallest positive age; zero: there is none.
func (a Ages) youngest() (least time.Duration) {
	for _, age := range []time.Duration{a.Completed, a.Failed, a.Cancelled} {
		if age > 0 && (least == 0 || age < least) {
			least = age
		}
	}
	return least
}

// ExpireJobs looks at the next jobs by age, at most limit, and deletes those that ended too long ago.
// Why the API also deletes by itself: docs/decisions/api.md#a-deletion-is-repeated-until-it-is-final
func (s *Store) ExpireJobs(
	ctx context.Context, now time.Time, ages Ages, after uuid.UUID, limit int,
) (apidb.Walked, error) {
	if ages.youngest() == 0 {
		return apidb.Walked{Last: after}, nil
	}
	p := gen.JobsExpireParams{
		AfterID: after, BeforeID: idtime.Before(now, ages.youngest()), MaxJobs: int32(limit),
		CompletedBefore: before(now, ages.Completed), FailedBefore: before(now, ages.Failed),
		CancelledBefore: before(now, ages.Cancelled),
	}
	var row gen.JobsExpireRow
	err := s.db.Tx(ctx, func(q *gen.Queries) (err error) {
		row, err = q.JobsExpire(ctx, p)
		return err
	})
	walked := apidb.Walked{Last: row.LastID, Gone: row.Gone, More: row.Seen == int64(limit)}
	return walked, apidb.Classify("expire jobs", err)
}

// ForgetDeleted looks at the next ids of deleted jobs by age, at most limit, and forgets those of jobs that were
// deleted longer than age ago.
func (s *Store) ForgetDeleted(
	ctx context.Context, now time.Time, age time.Duration, after uuid.UUID, limit int,
) (apidb.Walked, error) {
	row, err := s.q.DeletedForget(ctx, gen.DeletedForgetParams{
		AfterID: after, BeforeID: idtime.Before(now, age), MaxRows: int32(limit), DeletedBefore: now.Add(-age),
	})
	walked := apidb.Walked{Last: row.LastID, Gone: row.Gone, More: row.Seen == int64(limit)}
	return walked, apidb.Classify("forget the ids of deleted jobs", err)
}

// ExpireBatches looks at the next batches by age, at most limit, and deletes those that ended too long ago and have no
// job left. An expired batch counts as failed.
func (s *Store) ExpireBatches(
	ctx context.Context, now time.Time, ages Ages, after uuid.UUID, limit int,
) (apidb.Walked, error) {
	if ages.youngest() == 0 {
		return apidb.Walked{Last: after}, nil
	}
	row, err := s.q.BatchesExpire(ctx, gen.BatchesExpireParams{
		AfterID: after, BeforeID: idtime.Before(now, ages.youngest()), MaxBatches: int32(limit),
		CompletedBefore: before(now, ages.Completed), FailedBefore: before(now, ages.Failed),
		CancelledBefore: before(now, ages.Cancelled),
	})
	walked := apidb.Walked{Last: row.LastID, Gone: row.Gone, More: row.Seen == int64(limit)}
	return walked, apidb.Classify("expire batches", err)
}

func before(now time.Time, age time.Duration) *time.Time {
	if age == 0 {
		return nil
	}
	at := now.Add(-age)
	return &at
}
