package apidb

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
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
	latest := map[uuid.UUID]*StatusWord{}
	for i := range words {
		if known := latest[words[i].JobID]; known == nil || known.Version < words[i].Version {
			latest[words[i].JobID] = &words[i]
		}
	}
	params := statusParams(latest)
	err = s.tx(ctx, func(q *gen.Queries) error {
		changed, err = q.JobsApplyStatus(ctx, params)
		return err
	})
	return changed, classify(fmt.Sprintf("apply %d job statuses", len(latest)), err)
}

func statusParams(latest map[uuid.UUID]*StatusWord) gen.JobsApplyStatusParams {
	var p gen.JobsApplyStatusParams
	for _, id := range sortedIDs(latest) {
		word := latest[id]
		number, refused := 0, false
		if word.LastCommand != nil {
			number, refused = word.LastCommand.Number, !word.LastCommand.Applied
		}
		p.JobIDs = append(p.JobIDs, id)
		p.Statuses = append(p.Statuses, word.Status.Status)
		p.Versions = append(p.Versions, word.Version)
		p.Attempts = append(p.Attempts, int32(word.Attempt))
		p.RetryCounts = append(p.RetryCounts, int32(word.RetryCount))
		p.UpdatedAts = append(p.UpdatedAts, word.UpdatedAt)
		p.Snapshots = append(p.Snapshots, word.JSON)
		p.CommandNumbers = append(p.CommandNumbers, int32(number))
		p.Refuseds = append(p.Refuseds, refused)
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
	err := s.tx(ctx, func(q *gen.Queries) error { return q.LogInsertMany(ctx, p) })
	return classify(fmt.Sprintf("add %d runs of log lines", len(logs)), err)
}

// Beat is a worker's heartbeat, with the JSON in which it came.
type Beat struct {
	jobevent.Heartbeat
	JSON json.RawMessage
}

// SeeWorkers takes the latest beat of each worker, the last one in beats, and how far its attempts have
// come. A worker that stops is forgotten.
func (s *Store) SeeWorkers(ctx context.Context, beats []Beat) error {
	latest := map[string]*Beat{}
	for i := range beats {
		latest[beats[i].WorkerID] = &beats[i]
	}
	var stopping []string
	var seen gen.WorkerSeeManyParams
	for _, id := range slices.SortedFunc(maps.Keys(latest), strings.Compare) {
		if latest[id].Stopping {
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
	err = s.tx(ctx, func(q *gen.Queries) error {
		if len(progress.JobIDs) > 0 {
			if err := q.JobsProgress(ctx, progress); err != nil {
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
	return classify(fmt.Sprintf("see %d workers", len(latest)), err)
}

func progressParams(beats map[string]*Beat) (p gen.JobsProgressParams, err error) {
	held := map[uuid.UUID]jobevent.HeldAttempt{}
	for _, beat := range beats {
		for _, attempt := range beat.Attempts {
			if attempt.Progress != nil && held[attempt.JobID].Attempt <= attempt.Attempt {
				held[attempt.JobID] = attempt
			}
		}
	}
	for _, id := range sortedIDs(held) {
		progress, err := json.Marshal(held[id].Progress)
		if err != nil {
			return p, fmt.Errorf("write progress: %w", err)
		}
		p.JobIDs = append(p.JobIDs, id)
		p.Attempts = append(p.Attempts, int32(held[id].Attempt))
		p.Progresses = append(p.Progresses, progress)
	}
	return p, nil
}
