package statusstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/idtime"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/latency"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// PublishedStatus is a status of a job that the scheduler published, with its JSON.
type PublishedStatus struct {
	jobevent.Status
	JSON json.RawMessage
}

// ApplyStatuses stores the highest version of each job if it is newer than the stored one, and deletes the commands
// that it answers. It returns how many rows changed, or jobevent.ErrInvalid for a status that no job can have.
func (s *Store) ApplyStatuses(ctx context.Context, statuses []PublishedStatus) (changed int64, err error) {
	for i := range statuses {
		if err := check(&statuses[i]); err != nil {
			return 0, err
		}
	}
	latest := latestStatuses(statuses)
	params, answers := statusParams(latest), answerParams(latest)
	notify, done := s.db.BeginChange()
	defer done()
	if notify {
		params.Payloads = changes(latest)
	}
	var row gen.JobsApplyStatusRow
	if len(answers.JobIDs) == 0 { // the usual case
		row, err = s.q.JobsApplyStatus(ctx, params)
	} else {
		err = s.db.Tx(ctx, func(q *gen.Queries) error {
			if row, err = q.JobsApplyStatus(ctx, params); err != nil {
				return err
			}
			return q.CommandsAnswered(ctx, answers)
		})
	}
	return row.Changed, apidb.Classify(fmt.Sprintf("apply %d job statuses", len(latest)), err)
}

// check refuses what the table would take, since its check is short.
func check(s *PublishedStatus) error {
	if !jobstate.Status(s.Status.Status).Valid() || s.Version < 1 || s.Attempt < 0 || s.RetryCount < 0 {
		return fmt.Errorf("apply the status of job %s: status %.40q, version %d, attempt %d, retry %d: %w",
			s.JobID, s.Status.Status, s.Version, s.Attempt, s.RetryCount, jobevent.ErrInvalid)
	}
	return nil
}

// latestStatuses returns one status for each job, in the order of ids: batches that share rows must lock them in the
// same order, or they would deadlock.
func latestStatuses(statuses []PublishedStatus) []*PublishedStatus {
	latest := make([]*PublishedStatus, len(statuses))
	for i := range statuses {
		latest[i] = &statuses[i]
	}
	slices.SortFunc(latest, func(a, b *PublishedStatus) int {
		return cmp.Or(bytes.Compare(a.JobID[:], b.JobID[:]), cmp.Compare(b.Version, a.Version))
	})
	return slices.CompactFunc(latest, func(a, b *PublishedStatus) bool { return a.JobID == b.JobID })
}

func statusParams(latest []*PublishedStatus) gen.JobsApplyStatusParams {
	n := len(latest)
	p := gen.JobsApplyStatusParams{
		JobIDs: make([]uuid.UUID, n), Statuses: make([]string, n), Versions: make([]int64, n), Attempts: make([]int32, n),
		RetryCounts: make([]int32, n), UpdatedAts: make([]time.Time, n), Snapshots: make([]string, n),
		Times: make([]int32, n), ErrorCodes: make([]string, n),
	}
	for i, published := range latest {
		p.JobIDs[i], p.Statuses[i], p.Versions[i] = published.JobID, published.Status.Status, published.Version
		p.Attempts[i], p.RetryCounts[i] = int32(published.Attempt), int32(published.RetryCount)
		p.UpdatedAts[i], p.Snapshots[i], p.Times[i] = lastMoveAt(published), string(published.JSON), times(published)
		if published.LastError != nil {
			p.ErrorCodes[i] = published.LastError.ErrorCode
		}
	}
	return p
}

// lastMoveAt returns the end of an ended job, also if the scheduler has written its row since, as for a refused
// command. Filters, statistics and retention take updated_at of an ended job as its end.
func lastMoveAt(published *PublishedStatus) time.Time {
	if published.FinishedAt != nil {
		return *published.FinishedAt
	}
	return published.UpdatedAt
}

func answerParams(latest []*PublishedStatus) (p gen.CommandsAnsweredParams) {
	for _, published := range latest {
		if answer := published.LastCommand; answer != nil {
			p.JobIDs = append(p.JobIDs, published.JobID)
			p.Numbers = append(p.Numbers, int32(answer.Number))
			p.Refuseds = append(p.Refuseds, !answer.Applied)
			p.Reasons = append(p.Reasons, answer.Reason)
		}
	}
	return p
}

// times returns the buckets of an ended job in one number: from acceptance to start (bits 0–7, of a first attempt
// only, because a later attempt waited for the earlier ones), from acceptance to end (8–15), from start to end
// (16–23). Clocks differ, so a duration is at least zero. The time in a job's id is that of its acceptance.
func times(published *PublishedStatus) int32 {
	waited, took, ran := int32(latency.None), int32(latency.None), int32(latency.None)
	finishedAt := lastMoveAt(published)
	if acceptedAt, known := idtime.Of(published.JobID); known {
		took = latency.BucketOf(finishedAt.Sub(acceptedAt))
		if published.StartedAt != nil && published.Attempt == 1 {
			waited = latency.BucketOf(published.StartedAt.Sub(acceptedAt))
		}
	}
	if published.StartedAt != nil {
		ran = latency.BucketOf(finishedAt.Sub(*published.StartedAt))
	}
	return waited | took<<8 | ran<<16
}

// changes returns the notifications of statuses, including statuses that turn out to be old.
func changes(statuses []*PublishedStatus) []string {
	var ended, others []uuid.UUID
	for _, published := range statuses {
		if jobstate.Status(published.Status.Status).Terminal() {
			ended = append(ended, published.JobID)
		} else {
			others = append(others, published.JobID)
		}
	}
	return apidb.StatusChanges(ended, others)
}
