package afterrestore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/recoverystore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

type run struct {
	Report
	api        *recoverystore.Store
	scheduler  schedulerdb.Restored
	ingest     func(context.Context, []jobevent.Created) (emit.Effects, error)
	apply      func(context.Context, []statusstore.PublishedStatus) (int64, error)
	forget     func(context.Context, []statusstore.Gone) (int64, error)
	knownUntil time.Time
	lastOrder  int64
}

// ended copies to the scheduler the jobs that it lacks, and the jobs that have ended for the API. It copies to the API
// the jobs that it lacks, and those that it wrongly takes for ended: nothing else would correct them.
func (r *run) ended(ctx context.Context, p page) error {
	var lacks, ahead, behind, alone, deleted []uuid.UUID
	seen := map[uuid.UUID]int32{}
	for id, ours := range p.api {
		theirs, both := p.scheduler[id]
		switch {
		case !both && ours.Version > 0:
			lacks = append(lacks, id)
			if hasEnded(ours) {
				ahead = append(ahead, id)
			}
		case !both: // reconcile publishes it
		case hasEnded(ours) && ours.Version > theirs.Version:
			ahead = append(ahead, id)
		case hasEnded(ours) && ours.Version < theirs.Version:
			behind = append(behind, id)
		}
		if both && ours.CommandSeq < theirs.CommandSeq {
			seen[id] = theirs.CommandSeq
		}
	}
	for id, theirs := range p.scheduler {
		r.lastOrder = max(r.lastOrder, theirs.OrderNumber)
		if _, both := p.api[id]; both || theirs.IsDeleted {
			continue
		}
		alone = append(alone, id)
		if theirs.CreatedAt.Before(r.knownUntil.Add(-stillOpen)) {
			deleted = append(deleted, id)
		}
	}
	r.Jobs += len(p.api) + len(alone)
	if err := r.toScheduler(ctx, lacks, ahead); err != nil {
		return err
	}
	return r.toAPI(ctx, behind, alone, deleted, seen)
}

func (r *run) toScheduler(ctx context.Context, lacks, ahead []uuid.UUID) error {
	if len(lacks) > 0 {
		created, err := r.api.Accepted(ctx, lacks)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(created, ingestOf) {
			if _, err := r.ingest(ctx, some); err != nil {
				return err
			}
		}
	}
	_, err := r.adopt(ctx, ahead)
	return err
}

func (r *run) toAPI(ctx context.Context, behind, alone, deleted []uuid.UUID, seen map[uuid.UUID]int32) error {
	if err := r.update(ctx, behind); err != nil {
		return err
	}
	if len(deleted) > 0 {
		n, err := r.scheduler.Cancel(ctx, deleted)
		if err != nil {
			return err
		}
		r.Cancelled += n
	}
	if len(alone) > 0 {
		jobs, err := r.scheduler.Accepted(ctx, alone)
		if err != nil {
			return err
		}
		n, err := r.api.Insert(ctx, jobs)
		if err != nil {
			return err
		}
		r.BackInAPI += n
	}
	if len(seen) == 0 {
		return nil
	}
	n, err := r.api.Number(ctx, seen)
	r.Numbered += n
	return err
}

// others copies to the scheduler the jobs that have not ended and have a higher version in the API. Jobs with an
// ordering key are copied one by one: only one job of a key can have the turn, and the API may have two.
func (r *run) others(ctx context.Context, p page) error {
	var free []uuid.UUID
	parts := [][]uuid.UUID{}
	for id, ours := range p.api {
		if theirs, both := p.scheduler[id]; !both || hasEnded(ours) || ours.Version <= theirs.Version || theirs.IsDeleted {
			continue
		}
		if ours.IsOrdered {
			parts = append(parts, []uuid.UUID{id})
		} else {
			free = append(free, id)
		}
	}
	slices.SortFunc(parts, func(a, b []uuid.UUID) int { return bytes.Compare(a[0][:], b[0][:]) })
	if len(free) > 0 {
		parts = append(parts, free)
	}
	for _, part := range parts {
		adopted, err := r.adopt(ctx, part)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(part, func(id uuid.UUID) bool { return slices.Contains(adopted, id) })
		if len(left) == 0 {
			continue
		}
		n, err := r.api.ForgetStatuses(ctx, left)
		if err != nil {
			return err
		}
		r.AskedAgain += n
	}
	return nil
}

func (r *run) adopt(ctx context.Context, ids []uuid.UUID) (adopted []uuid.UUID, err error) {
	for some := range slices.Chunk(ids, adoptOf) {
		took, err := r.adoptSome(ctx, some)
		if err != nil {
			return adopted, err
		}
		adopted = append(adopted, took...)
	}
	return adopted, nil
}

func (r *run) adoptSome(ctx context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
	words, err := r.api.Statuses(ctx, ids)
	if err != nil {
		return nil, err
	}
	accepted, err := r.api.Accepted(ctx, ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[uuid.UUID]jobevent.Created, len(accepted))
	for _, job := range accepted {
		byID[job.JobID] = job
	}
	statuses, cancels := make([]json.RawMessage, len(words)), make([]time.Time, len(words))
	asked := make([]jobevent.Created, len(words))
	for i, word := range words {
		statuses[i], cancels[i], asked[i] = word.JSON, word.CancelRequestedAt, byID[word.JobID]
	}
	adopted, err := r.scheduler.Adopt(ctx, statuses, asked, cancels)
	r.ToScheduler += int64(len(adopted))
	return adopted, err
}

// update applies the scheduler's snapshots of jobs to the API's database.
func (r *run) update(ctx context.Context, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	effects, err := r.scheduler.Snapshots(ctx, ids)
	if err != nil {
		return err
	}
	events, err := effects.Events("after-restore")
	if err != nil {
		return err
	}
	words, gone, err := decodeSnapshots(events)
	if err != nil {
		return err
	}
	changed, err := r.apply(ctx, words)
	if err != nil {
		return err
	}
	forgotten, err := r.forget(ctx, gone)
	r.ToAPI += changed + forgotten
	return err
}

func decodeSnapshots(events []jobevent.Item) (words []statusstore.PublishedStatus, gone []statusstore.Gone, err error) {
	for _, e := range events {
		switch e.Type() {
		case jobevent.TypeStatus:
			status, err := jobevent.Decode[jobevent.RawStatus](e)
			if err != nil {
				return nil, nil, err
			}
			words = append(words, statusstore.PublishedStatus{Status: status.WithoutHistory(), JSON: e.Data()})
		case jobevent.TypeDeleted:
			version, err := jobevent.DeletedVersion(e)
			if err != nil {
				return nil, nil, err
			}
			id, err := uuid.Parse(e.Subject())
			if err != nil {
				return nil, nil, fmt.Errorf("read the job of the end %s: %w", e.ID(), err)
			}
			gone = append(gone, statusstore.Gone{JobID: id, Version: version})
		}
	}
	return words, gone, nil
}
