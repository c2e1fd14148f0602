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

// StatusWord is a status of a job that the scheduler published, with the JSON in which it came.
type StatusWord struct {
	jobevent.Status
	JSON json.RawMessage
}

// ApplyStatuses stores the highest version of each job where it is newer than the stored one, and deletes the commands
// that it answers. It returns how many rows changed.
func (s *Store) ApplyStatuses(ctx context.Context, words []StatusWord) (changed int64, err error) {
	latest := latestWords(words)
	params, answers := statusParams(latest), answerParams(latest)
	tells, done := s.db.BeginChange()
	defer done()
	if tells {
		params.Tellings = changes(latest)
	}
	var row gen.JobsApplyStatusRow
	if len(answers.JobIDs) == 0 { // as a rule
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

// latestWords returns one status a job, in the order of ids: batches that share rows must lock them in one order, or
// they would deadlock.
func latestWords(words []StatusWord) []*StatusWord {
	latest := make([]*StatusWord, len(words))
	for i := range words {
		latest[i] = &words[i]
	}
	slices.SortFunc(latest, func(a, b *StatusWord) int {
		return cmp.Or(bytes.Compare(a.JobID[:], b.JobID[:]), cmp.Compare(b.Version, a.Version))
	})
	return slices.CompactFunc(latest, func(a, b *StatusWord) bool { return a.JobID == b.JobID })
}

func statusParams(latest []*StatusWord) gen.JobsApplyStatusParams {
	n := len(latest)
	p := gen.JobsApplyStatusParams{
		JobIDs: make([]uuid.UUID, n), Statuses: make([]string, n), Versions: make([]int64, n), Attempts: make([]int32, n),
		RetryCounts: make([]int32, n), UpdatedAts: make([]time.Time, n), Snapshots: make([]string, n),
		Times: make([]int32, n), ErrorCodes: make([]string, n),
	}
	for i, word := range latest {
		p.JobIDs[i], p.Statuses[i], p.Versions[i] = word.JobID, word.Status.Status, word.Version
		p.Attempts[i], p.RetryCounts[i] = int32(word.Attempt), int32(word.RetryCount)
		p.UpdatedAts[i], p.Snapshots[i], p.Times[i] = word.UpdatedAt, string(word.JSON), times(word)
		if word.LastError != nil {
			p.ErrorCodes[i] = word.LastError.ErrorCode
		}
	}
	return p
}

func answerParams(latest []*StatusWord) (p gen.CommandsAnsweredParams) {
	for _, word := range latest {
		if answer := word.LastCommand; answer != nil {
			p.JobIDs = append(p.JobIDs, word.JobID)
			p.Numbers = append(p.Numbers, int32(answer.Number))
			p.Refuseds = append(p.Refuseds, !answer.Applied)
			p.Reasons = append(p.Reasons, answer.Reason)
		}
	}
	return p
}

// times are the buckets of a job that has ended, in one number: from acceptance to start (bits 0–7, of a
// first attempt only: before a later one others ran), from acceptance to end (8–15), from start to end
// (16–23). Clocks differ, so nothing takes less than nothing. It is accepted when its id was made.
func times(word *StatusWord) int32 {
	waited, took, ran := int32(latency.None), int32(latency.None), int32(latency.None)
	finishedAt := word.UpdatedAt
	if word.FinishedAt != nil {
		finishedAt = *word.FinishedAt
	}
	if acceptedAt, known := idtime.Of(word.JobID); known {
		took = latency.BucketOf(finishedAt.Sub(acceptedAt))
		if word.StartedAt != nil && word.Attempt == 1 {
			waited = latency.BucketOf(word.StartedAt.Sub(acceptedAt))
		}
	}
	if word.StartedAt != nil {
		ran = latency.BucketOf(finishedAt.Sub(*word.StartedAt))
	}
	return waited | took<<8 | ran<<16
}

// changes returns the notifications of statuses, also of those that turn out to be old.
func changes(words []*StatusWord) []string {
	var ended, others []uuid.UUID
	for _, word := range words {
		if jobstate.Status(word.Status.Status).Terminal() {
			ended = append(ended, word.JobID)
		} else {
			others = append(others, word.JobID)
		}
	}
	return apidb.StatusChanges(ended, others)
}
