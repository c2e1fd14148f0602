package workerstore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/rowjson"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Heartbeat is a worker's heartbeat, with its JSON.
type Heartbeat struct {
	jobevent.Heartbeat
	JSON json.RawMessage
}

// See stores the latest heartbeat of each worker, the last one in heartbeats, and the progress of its attempts. A
// stopping worker without attempts is deleted.
func (s *Store) See(ctx context.Context, heartbeats []Heartbeat) error {
	latest := map[string]*Heartbeat{}
	for i := range heartbeats {
		key := heartbeats[i].WorkerID
		if heartbeats[i].Part > 0 { // only its progress counts
			key += " " + strconv.Itoa(heartbeats[i].Part)
		}
		latest[key] = &heartbeats[i]
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
		seen.Heartbeats = append(seen.Heartbeats, latest[id].JSON)
	}
	progress, err := progressParams(latest)
	if err != nil {
		return err
	}
	notify, done := s.db.BeginChange()
	defer done()
	err = s.db.Tx(ctx, func(q *gen.Queries) error {
		if len(progress.JobIDs) > 0 {
			changed, err := q.JobsProgress(ctx, progress)
			if err == nil && notify {
				err = apidb.NotifyChange(ctx, q, apidb.ChangeProgress, changed)
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
	return apidb.Classify(fmt.Sprintf("see %d workers", len(latest)), err)
}

func progressParams(heartbeats map[string]*Heartbeat) (p gen.JobsProgressParams, err error) {
	held := map[uuid.UUID]jobevent.ListedAttempt{}
	for _, heartbeat := range heartbeats {
		for _, attempt := range slices.Concat(heartbeat.Left, heartbeat.Attempts) {
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

// sortedIDs returns the keys sorted: batches that share rows lock them in the same order, or they would deadlock.
func sortedIDs[V any](m map[uuid.UUID]V) []uuid.UUID {
	return slices.SortedFunc(maps.Keys(m), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
}
