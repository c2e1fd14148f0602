package schedulerdb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// Heartbeat stores the heartbeats of workers: their slots, and the attempts that they hold or have started. If a
// heartbeat adds room, Heartbeat dispatches jobs into it.
// Why a heartbeat may correct a start: docs/decisions/dispatch.md#a-step-of-postgresqls-clock-ends-no-attempt
func (s *Store) Heartbeat(ctx context.Context, heartbeats []jobevent.Heartbeat) (emit.Effects, error) {
	latest := map[string]jobevent.Heartbeat{}
	for _, heartbeat := range heartbeats {
		if err := checkHeartbeat(heartbeat); err != nil {
			return emit.Effects{}, err
		}
		if before, some := latest[heartbeat.WorkerID]; some && heartbeat.Part > 0 {
			before.Attempts = append(slices.Clip(before.Attempts), heartbeat.Attempts...)
			heartbeat = before
		}
		latest[heartbeat.WorkerID] = heartbeat
	}
	listed := listedAttempts(latest)
	ids := make([]uuid.UUID, len(listed))
	for i := range listed {
		ids[i] = listed[i].JobID
	}
	if err := s.leaveCohorts(ctx, ids); err != nil {
		return emit.Effects{}, err
	}
	var r result
	err := s.step(ctx, &r, nil, func(t step) error {
		r = result{}
		delta := dispatch.NewDelta()
		if err := s.renew(ctx, t.Queries, listed, &r, &delta); err != nil {
			return err
		}
		l, err := s.lockLedger(ctx, t.Queries)
		if err != nil {
			return err
		}
		l.Enter(delta)
		if kept := unknownDrains(latest, l.Controls()); len(kept) > 0 {
			if err := changeControls(ctx, t.Queries, l, kept); err != nil {
				return err
			}
		}
		if err := seeWorkers(ctx, t.Queries, latest, l); err != nil {
			return err
		}
		r.Drains, r.Follows = drains(latest, l.Controls()), follows(latest, l.Controls())
		return s.dispatchLocked(ctx, t, "watchdog", l, &r)
	})
	return r.Effects, err
}

// unknownDrains returns the controls of workers that drain although they have none. A control is deleted with its
// worker, that is when the worker has been silent for an hour, and a machine can stand still for longer. Any change
// through the API has a higher version than the one that the worker follows.
func unknownDrains(latest map[string]jobevent.Heartbeat, controls *dispatch.Controls) (kept []jobevent.Control) {
	for id, heartbeat := range latest {
		if heartbeat.Draining && !heartbeat.Stopping && controls.OfWorker(id).Version == 0 {
			kept = append(kept, jobevent.Control{
				Kind: jobevent.ControlWorker, Name: id, Version: max(1, heartbeat.DrainVersion), Paused: true,
			})
		}
	}
	return kept
}

// drains returns orders to workers: to drain, or to stop draining, if their heartbeats do not show that yet. A worker
// that drains by an earlier order gets the later one, too: until then its heartbeats may be older than an undo between
// the two. Orders are not stored, and a lost order is repeated after the next heartbeat.
func drains(latest map[string]jobevent.Heartbeat, controls *dispatch.Controls) (orders []emit.Drain) {
	for id, heartbeat := range latest {
		control := controls.OfWorker(id)
		obeys := control.Paused == heartbeat.Draining && (!control.Paused || heartbeat.DrainVersion >= control.Version)
		if !obeys && !heartbeat.Stopping {
			orders = append(orders, emit.Drain{WorkerID: id, Drain: control.Paused, Version: control.Version})
		}
	}
	return orders
}

// follows returns orders to the workers whose heartbeats do not show yet that they know the created queues. They are
// repeated as drains are.
func follows(latest map[string]jobevent.Heartbeat, controls *dispatch.Controls) (orders []emit.Follow) {
	queues, digest := controls.Created()
	for id, heartbeat := range latest {
		if heartbeat.Follows != "" && heartbeat.Follows != digest && !heartbeat.Stopping {
			control := controls.OfWorker(id)
			orders = append(orders, emit.Follow{
				Drain:  emit.Drain{WorkerID: id, Drain: control.Paused, Version: control.Version},
				Queues: queues, Revision: controls.Revision(),
			})
		}
	}
	return orders
}

// listedAttempt is an attempt with the worker that listed it in its heartbeat.
type listedAttempt struct {
	jobevent.ListedAttempt
	workerID string
}

func listedAttempts(latest map[string]jobevent.Heartbeat) (listed []listedAttempt) {
	for id, heartbeat := range latest {
		for _, attempt := range heartbeat.Attempts {
			listed = append(listed, listedAttempt{attempt, id})
		}
	}
	return listed
}

// renew renews the leases of the listed attempts, and makes started ones RUNNING.
func (s *Store) renew(
	ctx context.Context, q *gen.Queries, listed []listedAttempt, r *result, delta *dispatch.Delta,
) error {
	if len(listed) == 0 {
		return nil
	}
	started := gen.JobsStartedParams{Lease: s.cfg.Lease}
	all := gen.LeasesRenewParams{Lease: s.cfg.Lease, RenewBelow: s.cfg.Lease * 7 / 10}
	for _, a := range listed {
		all.JobIDs = append(all.JobIDs, a.JobID)
		all.Attempts = append(all.Attempts, int32Of(a.Attempt))
		all.WorkerIDs = append(all.WorkerIDs, a.workerID)
		if a.StartedAt != nil {
			started.JobIDs = append(started.JobIDs, a.JobID)
			started.Attempts = append(started.Attempts, int32Of(a.Attempt))
			started.WorkerIDs = append(started.WorkerIDs, a.workerID)
			started.StartedAts = append(started.StartedAts, *a.StartedAt)
			started.Entries = append(started.Entries, string(appendEnd(nil, jobevent.Transition{
				To: string(jobstate.Running), Attempt: a.Attempt, By: "watchdog",
				WorkerID:  cmp.Or(jobevent.CleanText(a.RanBy, nameMost), a.workerID),
				StartedAt: jobevent.UTC(a.StartedAt),
			})))
		}
	}
	running, err := q.JobsStarted(ctx, started)
	if err != nil {
		return fmt.Errorf("start attempts: %w", err)
	}
	for _, row := range running {
		r.Jobs = append(r.Jobs, startedSnapshot(row))
		delta.NoteHolder(row.Queue, nullable.Value(row.Partition), row.WasListedBy, nullable.Value(row.WorkerID))
	}
	extended, err := q.LeasesRenew(ctx, all)
	if err != nil {
		return fmt.Errorf("extend leases: %w", err)
	}
	for _, row := range extended {
		delta.NoteHolder(row.Queue, nullable.Value(row.Partition), row.WasListedBy, nullable.Value(row.WorkerID))
	}
	return nil
}

// AskMost bounds the run orders that one call of AskAgain republishes, and the jobs that it fails.
const AskMost = 1000

// AskAgain asks about the attempts that no worker has listed for a lease, by republishing their run orders. Each
// question without an answer delays the next one. AskAgain also repeats unanswered cancels that have become due since
// the last call, fails jobs for which no worker has come, and corrects the ledger by the count.
func (s *Store) AskAgain(ctx context.Context, counted Count, sinceLast time.Duration) (emit.Effects, error) {
	if err := s.leaveUnlisted(ctx); err != nil {
		return emit.Effects{}, err
	}
	var r result
	err := s.step(ctx, &r, nil, func(t step) error {
		r = result{}
		delta := dispatch.NewDelta()
		if err := s.askAgain(ctx, t.Queries, counted, sinceLast, &r, &delta); err != nil {
			return err
		}
		if err := counted.unserved.write(ctx, t.Queries, &delta); err != nil {
			return err
		}
		failed, err := s.failWithoutWorker(ctx, t.Queries, counted, &delta)
		if err != nil {
			return err
		}
		r.Jobs = append(r.Jobs, failed...)
		if err := s.findOverdue(ctx, t.Queries, &delta); err != nil || delta.Empty() && counted.drift.Empty() {
			return err
		}
		l, err := s.lockLedger(ctx, t.Queries)
		if err != nil {
			return err
		}
		l.AddDrift(&delta, counted.drift, counted.revision)
		l.Enter(delta)
		return s.dispatchLocked(ctx, t, "watchdog", l, &r)
	})
	return r.Effects, err
}

func (s *Store) askAgain(
	ctx context.Context, q *gen.Queries, counted Count, sinceLast time.Duration, r *result, delta *dispatch.Delta,
) error {
	if counted.lastAt.After(counted.at.Add(2 * s.cfg.Lease)) {
		if err := q.LeasesCut(ctx, gen.LeasesCutParams{Lease: s.cfg.Lease, MaxJobs: AskMost}); err != nil {
			return fmt.Errorf("cut leases: %w", err)
		}
	}
	if !counted.leaseAt.IsZero() && counted.leaseAt.Before(counted.at) {
		rows, err := q.JobsAskAgain(ctx, gen.JobsAskAgainParams{
			MaxJobs: AskMost, Lease: s.cfg.Lease, SilentAfter: silentAfter,
		})
		if err != nil {
			return fmt.Errorf("ask about attempts: %w", err)
		}
		for _, row := range rows {
			r.Runs = append(r.Runs, emit.RunOrder{
				JobID: row.JobID, TraceID: row.TraceID, Queue: row.Queue, JobType: row.JobType, Attempt: row.Attempt,
				Payload: row.Payload, Spec: row.Spec, Rank: row.Rank, Partition: row.Partition,
				CancelRequestedAt: row.CancelRequestedAt, ExpiresAt: row.ExpiresAt, StartedAt: row.StartedAt,
				OwnerID: row.OwnerID, FairnessKey: row.FairnessKey, Parents: row.Parents, Event: row.Event,
			})
			delta.NoteOut(row.Queue, row.WasListedBy, nullable.Value(row.WasSentTo), -1)
			delta.NoteOut(row.Queue, "", nullable.Value(row.Partition), 1)
			r.askedAgain = append(r.askedAgain, row.Queue)
		}
	}
	if counted.asked == 0 {
		return nil
	}
	unanswered, err := q.JobsCancelUnanswered(ctx, gen.JobsCancelUnansweredParams{SinceLast: sinceLast, MaxJobs: AskMost})
	if err != nil {
		return fmt.Errorf("find unanswered cancels: %w", err)
	}
	for _, row := range unanswered {
		r.Cancels = append(r.Cancels, emit.AttemptRef{JobID: row.JobID, TraceID: row.TraceID, Attempt: int(row.Attempt)})
	}
	return nil
}
