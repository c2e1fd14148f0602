package apidb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/idtime"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/latency"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/rowjson"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// StatusWord is the scheduler's word on a job, with the JSON in which it came.
type StatusWord struct {
	jobevent.Status
	JSON json.RawMessage
}

// ApplyStatuses takes the highest version of each job, where it is newer than what is known. A command
// that it answers is not kept any longer. It says how many rows changed.
func (s *Store) ApplyStatuses(ctx context.Context, words []StatusWord) (changed int64, err error) {
	latest := latestWords(words)
	params, answers := statusParams(latest), answerParams(latest)
	tells, done := s.BeginChange()
	defer done()
	if tells {
		params.Tellings = statusTellings(latest)
	}
	var row gen.JobsApplyStatusRow
	if len(answers.JobIDs) == 0 { // as a rule
		row, err = s.q.JobsApplyStatus(ctx, params)
	} else {
		err = s.Tx(ctx, func(q *gen.Queries) error {
			if row, err = q.JobsApplyStatus(ctx, params); err != nil {
				return err
			}
			return q.CommandsAnswered(ctx, answers)
		})
	}
	return row.Changed, Classify(fmt.Sprintf("apply %d job statuses", len(latest)), err)
}

// latestWords gives one word a job, in the order of ids: batches that share rows take them in one order,
// or they would deadlock.
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

// sortedIDs: batches that share rows take them in one order, or they would deadlock.
func sortedIDs[V any](m map[uuid.UUID]V) []uuid.UUID {
	return slices.SortedFunc(maps.Keys(m), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
}

// AddLogs keeps runs of log lines, each once.
func (s *Store) AddLogs(ctx context.Context, logs []jobevent.AttemptLog) error {
	var p gen.LogInsertManyParams
	slices.SortFunc(logs, func(a, b jobevent.AttemptLog) int { return slices.Compare(a.JobID[:], b.JobID[:]) })
	for _, log := range logs {
		lines, err := json.Marshal(log.Lines)
		if err != nil {
			return fmt.Errorf("write log lines: %w", err)
		}
		p.JobIDs = append(p.JobIDs, log.JobID)
		p.Attempts = append(p.Attempts, int32(log.Attempt))
		p.FirstLines = append(p.FirstLines, int32(log.FirstLine))
		p.Lines = append(p.Lines, lines)
	}
	tells, done := s.BeginChange()
	defer done()
	err := s.Tx(ctx, func(q *gen.Queries) error {
		if err := q.LogInsertMany(ctx, p); err != nil || !tells {
			return err
		}
		return NotifyChange(ctx, q, ChangeLog, slices.Compact(slices.Clone(p.JobIDs)))
	})
	return Classify(fmt.Sprintf("add %d runs of log lines", len(logs)), err)
}

// Beat is a worker's heartbeat, with the JSON in which it came.
type Beat struct {
	jobevent.Heartbeat
	JSON json.RawMessage
}

// SeeWorkers takes the latest beat of each worker, the last one in beats, and how far its attempts have
// come. A worker that stops is forgotten when it has nothing left.
func (s *Store) SeeWorkers(ctx context.Context, beats []Beat) error {
	latest := map[string]*Beat{}
	for i := range beats {
		key := beats[i].WorkerID
		if beats[i].Part > 0 { // of it only the progress counts
			key += " " + strconv.Itoa(beats[i].Part)
		}
		latest[key] = &beats[i]
	}
	var stopping []string
	var seen gen.WorkerSeeManyParams
	for _, id := range slices.SortedFunc(maps.Keys(latest), strings.Compare) {
		if latest[id].Part > 0 {
			continue
		}
		if latest[id].Stopping && len(latest[id].Attempts) == 0 {
			stopping = append(stopping, id)
			continue
		}
		seen.WorkerIDs = append(seen.WorkerIDs, id)
		seen.Beats = append(seen.Beats, latest[id].JSON)
	}
	progress, err := progressParams(latest)
	if err != nil {
		return err
	}
	tells, done := s.BeginChange()
	defer done()
	err = s.Tx(ctx, func(q *gen.Queries) error {
		if len(progress.JobIDs) > 0 {
			changed, err := q.JobsProgress(ctx, progress)
			if err == nil && tells {
				err = NotifyChange(ctx, q, ChangeProgress, changed)
			}
			if err != nil {
				return err
			}
		}
		if len(stopping) > 0 {
			if err := q.WorkerRemoveMany(ctx, stopping); err != nil {
				return err
			}
		}
		return q.WorkerSeeMany(ctx, seen)
	})
	return Classify(fmt.Sprintf("see %d workers", len(latest)), err)
}

func progressParams(beats map[string]*Beat) (p gen.JobsProgressParams, err error) {
	held := map[uuid.UUID]jobevent.HeldAttempt{}
	for _, beat := range beats {
		for _, attempt := range slices.Concat(beat.Left, beat.Attempts) {
			if attempt.Progress != nil && held[attempt.JobID].Attempt <= attempt.Attempt {
				held[attempt.JobID] = attempt
			}
		}
	}
	for _, id := range sortedIDs(held) {
		progress, err := json.Marshal(rowjson.Progress{Attempt: held[id].Attempt, Progress: *held[id].Progress})
		if err != nil {
			return p, fmt.Errorf("write progress: %w", err)
		}
		p.JobIDs = append(p.JobIDs, id)
		p.Attempts = append(p.Attempts, int32(held[id].Attempt))
		p.Progresses = append(p.Progresses, progress)
	}
	return p, nil
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
