package runjob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// save is a checkpoint to be saved. Its handler waits for the result.
type save struct {
	workerdb.Checkpoint
	result chan error // has room for it
}

var errLeft = errors.New("save checkpoint: the worker has stopped")

// saveCheckpoint saves a checkpoint of an attempt, and returns when it is stored. If ctx ends first, it is not known
// whether it is stored. One goroutine writes the checkpoints of many handlers in one statement: if each handler wrote
// its own, claims and heartbeats would wait for the few connections.
func (f *Function) saveCheckpoint(ctx context.Context, a *pool.Attempt, number int64, data json.RawMessage) error {
	sealed, wrong := a.SealCheckpoint(data)
	if wrong != nil {
		return wrong
	}
	a.HasCheckpoint.Store(true)
	one := save{workerdb.Checkpoint{
		Key: a.Key(), TraceID: a.TraceID, TimeoutMs: int(a.Run.TimeoutMs), Number: number, Data: sealed,
	}, make(chan error, 1)}
	f.saves.put(one)
	select {
	case err := <-one.result:
		return err
	case <-f.left:
		return errLeft
	case <-ctx.Done():
		return fmt.Errorf("save checkpoint: %w", context.Cause(ctx))
	}
}

// saveSoon is saveCheckpoint for a handler that may save what it has when its context ends: it has a moment for it.
func (f *Function) saveSoon(ctx context.Context, a *pool.Attempt, number int64, data json.RawMessage) error {
	waiting, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	defer giveUp(nil)
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(f.timing.cancelPatience, func() { giveUp(context.Cause(ctx)) })
	})
	defer stop()
	return f.saveCheckpoint(waiting, a, number, data)
}

// saveAll saves checkpoints in batches until the intake is closed and empty.
func (f *Function) saveAll(ctx context.Context) {
	for {
		batch := f.saves.take(maxSaves)
		if len(batch) == 0 {
			return
		}
		// Of two saves of an attempt the later one counts, and both have the same result.
		var keys []workerdb.Key
		of := map[workerdb.Key][]save{}
		for _, one := range batch {
			if of[one.Key] == nil {
				keys = append(keys, one.Key)
			}
			of[one.Key] = append(of[one.Key], one)
		}
		answer := func(key workerdb.Key, err error) {
			for _, one := range of[key] {
				select {
				case one.result <- err:
				default: // it has its result already
				}
			}
		}
		save := func(part []workerdb.Key) error {
			open, err := f.saveBatch(ctx, part, of)
			for _, key := range part {
				switch {
				case err != nil:
					return err
				case open[key]:
					answer(key, nil)
				default:
					answer(key, durable.ErrOver)
				}
			}
			return nil
		}
		if err := bisect(keys, save, answer); err != nil {
			for _, key := range keys {
				answer(key, err)
			}
		}
	}
}

func (f *Function) saveBatch(
	ctx context.Context, keys []workerdb.Key, of map[workerdb.Key][]save,
) (open map[workerdb.Key]bool, err error) {
	all := make([]workerdb.Checkpoint, len(keys))
	for i, key := range keys {
		for _, one := range of[key] {
			if one.Number >= all[i].Number {
				all[i] = one.Checkpoint
			}
		}
	}
	err = untilDone(ctx, &f.troubles.save, func() error {
		defer f.calls.Begin("saving checkpoints")()
		open, err = f.store.SaveCheckpoints(ctx, f.id, all)
		return err
	})
	return open, err
}

// checkpoints reads what earlier attempts have saved for claimed ones. A first attempt has none, so it costs nothing.
func (f *Function) checkpoints(
	ctx context.Context, orders []ordered, claims []workerdb.Claim,
) (map[uuid.UUID]json.RawMessage, error) {
	var jobs []uuid.UUID
	for i := range orders {
		mine := claims[i].State == workerdb.Claimed || claims[i].State == workerdb.OpenMine
		if run := &orders[i].run; mine && run.Attempt > 1 {
			jobs = append(jobs, run.JobID)
		}
	}
	if len(jobs) == 0 {
		return nil, nil
	}
	return f.store.Checkpoints(ctx, jobs)
}

// deleteCheckpoints deletes the checkpoints of jobs that completed here. If that fails, they go by their age.
func (f *Function) deleteCheckpoints(ctx context.Context, part []*pool.Finished) {
	var jobs []uuid.UUID
	for _, one := range part {
		if one.Outcome.Kind == workerdb.Completed && one.Attempt != nil && one.Attempt.HasCheckpoint.Load() {
			jobs = append(jobs, one.Outcome.JobID)
		}
	}
	if len(jobs) == 0 {
		return
	}
	if err := f.store.DeleteCheckpoints(ctx, jobs); err != nil {
		telemetry.Logger(ctx).WarnContext(ctx, "checkpoints of completed jobs not deleted", "jobs", len(jobs), "error", err)
	}
}
