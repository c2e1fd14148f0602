package schedulerdb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// rankPerPriority is what one level of priority is worth in waiting time.
const rankPerPriority = 10 * time.Second

// Ingest takes jobs in. One that is due and finds room with nobody waiting before it goes out at once,
// in its only write; the others are stored and told. A job that is known already is told again.
func (s *Store) Ingest(ctx context.Context, created []jobevent.Created) (Say, error) {
	for _, job := range created {
		if err := checkCreated(job); err != nil {
			return Say{}, err
		}
	}
	var say Say
	err := s.tx(ctx, func(q *gen.Queries) (err error) {
		say, err = s.ingest(ctx, q, created)
		return err
	})
	return say, err
}

func (s *Store) ingest(ctx context.Context, q *gen.Queries, created []jobevent.Created) (say Say, err error) {
	at, err := lockDispatch(ctx, q)
	if err != nil {
		return say, err
	}
	known, err := q.JobsKnown(ctx, createdIDs(created))
	if err != nil {
		return say, fmt.Errorf("look for known jobs: %w", err)
	}
	waiting, err := q.QueuesPending(ctx)
	if err != nil {
		return say, fmt.Errorf("find waiting queues: %w", err)
	}
	r, err := measureRoom(ctx, q)
	if err != nil {
		return say, err
	}
	in := s.place(without(known, created), at, r, waiting)
	if err := q.JobsInsert(ctx, in.params); err != nil {
		return say, fmt.Errorf("insert jobs: %w", err)
	}
	say.Runs = in.orders
	if say.Jobs, err = snapshots(ctx, q, in.stay); err != nil {
		return say, err
	}
	if !in.earliest.IsZero() {
		if err := notifyDue(ctx, q, in.earliest); err != nil {
			return say, err
		}
	}
	orders, err := s.sendOut(ctx, q, "ingest", r, waiting)
	if err != nil {
		return say, err
	}
	say.Runs = append(say.Runs, orders...)
	return say, again(ctx, q, known, &say)
}

// placed is a batch ready to be inserted.
type placed struct {
	params   gen.JobsInsertParams
	orders   []RunOrder  // of those that go out at once
	stay     []uuid.UUID // the others
	earliest time.Time   // due instant of those that are scheduled; zero: none
}

// place decides where each new job begins. Of one queue the best rank is placed first.
func (s *Store) place(jobs []jobevent.Created, at time.Time, r *room, waiting []string) placed {
	slices.SortStableFunc(jobs, func(a, b jobevent.Created) int {
		return cmp.Or(rankOf(a, at).Compare(rankOf(b, at)), slices.Compare(a.JobID[:], b.JobID[:]))
	})
	due := map[string]int{}
	for _, job := range jobs {
		if job.RunAt == nil || !job.RunAt.After(at) {
			due[job.Queue]++
		}
	}
	places := map[string][]place{}
	for queue, n := range due {
		if !slices.Contains(waiting, queue) {
			places[queue] = r.take(queue, n)
		}
	}
	var in placed
	for _, job := range jobs {
		switch {
		case job.RunAt != nil && job.RunAt.After(at):
			in.add(job, at, jobstate.Scheduled, nil, s.cfg.Lease)
		case len(places[job.Queue]) > 0:
			in.add(job, at, jobstate.Queued, &places[job.Queue][0], s.cfg.Lease)
			places[job.Queue] = places[job.Queue][1:]
		default:
			in.add(job, at, jobstate.Pending, nil, s.cfg.Lease)
		}
	}
	return in
}

func (in *placed) add(job jobevent.Created, at time.Time, status jobstate.Status, to *place, lease time.Duration) {
	p := &in.params
	move := jobevent.Move{At: at, To: string(status), By: "ingest"}
	var dueAt, leaseExpiresAt time.Time
	partition := int16(-1)
	rank := rankOf(job, at)
	switch {
	case to != nil:
		move.Attempt, partition, leaseExpiresAt = 1, to.partition, at.Add(lease)
		in.orders = append(in.orders, RunOrder{
			JobID: job.JobID, TraceID: job.TraceID, Queue: job.Queue, JobType: job.JobType, Attempt: 1,
			Payload: job.Payload, TimeoutMs: int32Of(job.TimeoutMs), Rank: rank, Partition: &partition,
		})
	case status == jobstate.Scheduled:
		dueAt = *job.RunAt
		if in.earliest.IsZero() || dueAt.Before(in.earliest) {
			in.earliest = dueAt
		}
	}
	if to == nil {
		in.stay = append(in.stay, job.JobID)
	}
	p.JobIDs = append(p.JobIDs, job.JobID)
	p.TraceIDs = append(p.TraceIDs, job.TraceID)
	p.JobTypes = append(p.JobTypes, job.JobType)
	p.Queues = append(p.Queues, job.Queue)
	p.Payloads = append(p.Payloads, job.Payload)
	p.Priorities = append(p.Priorities, int16Of(job.Priority))
	p.MaxRetryCounts = append(p.MaxRetryCounts, int16Of(job.MaxRetryCount))
	p.RetryPolicies = append(p.RetryPolicies, jsonOrNull(job.RetryPolicy))
	p.TimeoutsMs = append(p.TimeoutsMs, int32Of(job.TimeoutMs))
	p.Statuses = append(p.Statuses, string(status))
	p.Attempts = append(p.Attempts, int32(move.Attempt))
	p.Ranks = append(p.Ranks, rank)
	p.DueAts = append(p.DueAts, dueAt)
	p.LeaseExpiresAts = append(p.LeaseExpiresAts, leaseExpiresAt)
	p.Partitions = append(p.Partitions, partition)
	p.Histories = append(p.Histories, mustJSON([]jobevent.Move{move}))
	p.ErrorCodes = append(p.ErrorCodes, "")
	p.ErrorMessages = append(p.ErrorMessages, "")
	p.FinishedAts = append(p.FinishedAts, time.Time{})
	p.CreatedAts = append(p.CreatedAts, job.CreatedAt)
}

// rankOf orders the queue for ever: a level of priority is worth ten seconds of waiting.
func rankOf(job jobevent.Created, at time.Time) time.Time {
	ready := job.CreatedAt
	if ready.IsZero() || ready.After(at) {
		ready = at
	}
	if job.RunAt != nil && job.RunAt.After(ready) {
		ready = *job.RunAt
	}
	return ready.Add(-time.Duration(job.Priority) * rankPerPriority)
}

// IngestUnusable stores a job that was accepted and yet cannot be run, as failed: or the API would say
// it again for ever.
func (s *Store) IngestUnusable(ctx context.Context, jobID, traceID uuid.UUID, reason string) (Say, error) {
	var say Say
	err := s.tx(ctx, func(q *gen.Queries) error {
		say = Say{}
		at, err := lockDispatch(ctx, q)
		if err != nil {
			return err
		}
		known, err := q.JobsKnown(ctx, []uuid.UUID{jobID})
		if err != nil {
			return fmt.Errorf("look for known jobs: %w", err)
		}
		if len(known) == 0 {
			if err := insertFailed(ctx, q, jobID, traceID, at, reason); err != nil {
				return err
			}
		}
		return again(ctx, q, []uuid.UUID{jobID}, &say)
	})
	return say, err
}

func insertFailed(ctx context.Context, q *gen.Queries, jobID, traceID uuid.UUID, at time.Time, reason string) error {
	var in placed
	in.add(jobevent.Created{
		JobID: jobID, TraceID: traceID, Queue: jobevent.DefaultQueue,
		Payload: json.RawMessage("null"), TimeoutMs: 1, CreatedAt: at,
	}, at, jobstate.Failed, nil, 0)
	in.params.ErrorCodes[0], in.params.ErrorMessages[0] = "SCHEDULER.INVALID_JOB", cleanText(reason, messageMost)
	in.params.FinishedAts[0] = at
	if err := q.JobsInsert(ctx, in.params); err != nil {
		return fmt.Errorf("insert unusable job: %w", err)
	}
	return nil
}

func createdIDs(created []jobevent.Created) []uuid.UUID {
	ids := make([]uuid.UUID, len(created))
	for i, job := range created {
		ids[i] = job.JobID
	}
	return ids
}

// without gives the jobs that are not known. Of one that was said twice the first counts.
func without(known []uuid.UUID, created []jobevent.Created) []jobevent.Created {
	seen := make(map[uuid.UUID]bool, len(known)+len(created))
	for _, id := range known {
		seen[id] = true
	}
	var jobs []jobevent.Created
	for _, job := range created {
		if !seen[job.JobID] {
			seen[job.JobID] = true
			jobs = append(jobs, job)
		}
	}
	return jobs
}
