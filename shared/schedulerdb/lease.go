package schedulerdb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// Beat takes in what workers say of themselves: who lives, what they hold, what they have started.
// Room that they bring is used at once.
func (s *Store) Beat(ctx context.Context, beats []jobevent.Heartbeat) (Say, error) {
	latest := map[string]jobevent.Heartbeat{}
	for _, beat := range beats {
		if err := checkBeat(beat); err != nil {
			return Say{}, err
		}
		if before, some := latest[beat.WorkerID]; some && beat.Part > 0 {
			beat.Attempts = append(slices.Clip(before.Attempts), beat.Attempts...)
		}
		latest[beat.WorkerID] = beat
	}
	var say Say
	err := s.txSay(ctx, &say, func(q *gen.Queries) error {
		say = Say{}
		news := newTally()
		if err := s.hold(ctx, q, latest, &say, &news); err != nil {
			return err
		}
		l, err := s.lockDispatch(ctx, q)
		if err != nil {
			return err
		}
		if err := l.enter(ctx, q, news); err != nil {
			return err
		}
		if err := seeWorkers(ctx, q, latest); err != nil {
			return err
		}
		return s.dispatchLocked(ctx, q, "watchdog", l, &say)
	})
	return say, err
}

func seeWorkers(ctx context.Context, q *gen.Queries, latest map[string]jobevent.Heartbeat) error {
	var p gen.WorkersSeenParams
	var gone []string
	for id, beat := range latest {
		if beat.Stopping {
			gone = append(gone, id)
			continue
		}
		p.WorkerIDs = append(p.WorkerIDs, id)
		p.Partitions = append(p.Partitions, mustJSON(thereAre(beat.Partitions)))
		p.Slots = append(p.Slots, int32Of(beat.Slots))
		p.Rates = append(p.Rates, min(max(beat.Rate, 0), rateMost))
	}
	if err := q.WorkersSeen(ctx, p); err != nil {
		return fmt.Errorf("write workers: %w", err)
	}
	if err := q.WorkersGone(ctx, gen.WorkersGoneParams{WorkerIDs: gone, SilentAfter: silentAfter}); err != nil {
		return fmt.Errorf("forget workers: %w", err)
	}
	return nil
}

// thereAre leaves out partitions that a run-job topic has not.
func thereAre(said map[string][]int32) map[string][]int32 {
	partitions := make(map[string][]int32, len(said))
	for queue, numbers := range said {
		numbers = slices.DeleteFunc(slices.Clone(numbers), func(p int32) bool {
			return p < 0 || p >= jobevent.RunPartitions
		})
		slices.Sort(numbers)
		partitions[queue] = slices.Compact(numbers)
	}
	return partitions
}

// heldAttempt is one entry of a beat with the worker that said it.
type heldAttempt struct {
	jobevent.HeldAttempt
	workerID string
}

func (s *Store) hold(
	ctx context.Context, q *gen.Queries, latest map[string]jobevent.Heartbeat, say *Say, news *tally,
) error {
	var held []heldAttempt
	for id, beat := range latest {
		for _, attempt := range beat.Attempts {
			held = append(held, heldAttempt{attempt, id})
		}
	}
	if len(held) == 0 {
		return nil
	}
	started := gen.JobsStartedParams{Lease: s.cfg.Lease}
	all := gen.JobsHeldParams{Lease: s.cfg.Lease, RenewBelow: s.cfg.Lease * 7 / 10}
	for _, a := range held {
		all.JobIDs = append(all.JobIDs, a.JobID)
		all.Attempts = append(all.Attempts, int32Of(a.Attempt))
		all.WorkerIDs = append(all.WorkerIDs, a.workerID)
		if a.StartedAt != nil {
			started.JobIDs = append(started.JobIDs, a.JobID)
			started.Attempts = append(started.Attempts, int32Of(a.Attempt))
			started.WorkerIDs = append(started.WorkerIDs, a.workerID)
			started.StartedAts = append(started.StartedAts, *a.StartedAt)
			started.Entries = append(started.Entries, string(appendEnd(nil, jobevent.Move{
				To: string(jobstate.Running), Attempt: a.Attempt, By: "watchdog", WorkerID: a.workerID, StartedAt: utc(a.StartedAt),
			})))
		}
	}
	running, err := q.JobsStarted(ctx, started)
	if err != nil {
		return fmt.Errorf("start attempts: %w", err)
	}
	for _, row := range running {
		say.Jobs = append(say.Jobs, startedSnapshot(row))
		news.goesTo(row.Queue, partitionOf(row.Partition), row.WasHeldBy, orEmpty(row.WorkerID))
	}
	extended, err := q.JobsHeld(ctx, all)
	if err != nil {
		return fmt.Errorf("extend leases: %w", err)
	}
	for _, row := range extended {
		news.goesTo(row.Queue, partitionOf(row.Partition), row.WasHeldBy, orEmpty(row.WorkerID))
	}
	return nil
}

// AskMost bounds the orders that AskAgain says again at once.
const AskMost = 1000

// AskAgain says again the orders of attempts of which no worker has spoken for a lease, the more seldom the more
// often nobody answered, and, of the cancels that nobody answered, those that are due since the last look. What was
// counted puts the ledger right.
func (s *Store) AskAgain(ctx context.Context, counted Count, sinceLast time.Duration) (Say, error) {
	var say Say
	err := s.txSay(ctx, &say, func(q *gen.Queries) error {
		say = Say{}
		news := newTally()
		if err := s.askAgain(ctx, q, counted, sinceLast, &say, &news); err != nil {
			return err
		}
		if err := s.overdue(ctx, q, &news); err != nil || news.empty() && counted.drift.empty() {
			return err
		}
		l, err := s.lockDispatch(ctx, q)
		if err != nil {
			return err
		}
		// A drift that was counted before the last one was entered has that one in it.
		if counted.n >= l.Entered && !counted.drift.empty() {
			news.add(counted.drift)
			l.Entered = l.n + 1
		}
		if err := l.enter(ctx, q, news); err != nil {
			return err
		}
		return s.dispatchLocked(ctx, q, "watchdog", l, &say)
	})
	return say, err
}

func (s *Store) askAgain(
	ctx context.Context, q *gen.Queries, counted Count, sinceLast time.Duration, say *Say, news *tally,
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
			return fmt.Errorf("ask again: %w", err)
		}
		for _, row := range rows {
			say.Runs = append(say.Runs, RunOrder{
				JobID: row.JobID, TraceID: row.TraceID, Queue: row.Queue, JobType: row.JobType, Attempt: row.Attempt,
				Payload: row.Payload, TimeoutMs: row.TimeoutMs, Rank: row.Rank, Partition: row.Partition,
				CancelRequestedAt: row.CancelRequestedAt, ExpiresAt: row.ExpiresAt, StartedAt: row.StartedAt,
				OwnerID: row.OwnerID,
			})
			news.out.add(row.Queue, row.WasHeldBy, partitionOf(row.WasSentTo), -1)
			news.out.add(row.Queue, "", partitionOf(row.Partition), 1)
			say.askedAgain = append(say.askedAgain, row.Queue)
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
		say.Cancels = append(say.Cancels, AttemptRef{JobID: row.JobID, TraceID: row.TraceID, Attempt: int(row.Attempt)})
	}
	return nil
}
