package schedulerdb

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// A cohort is one row for jobs that were accepted together, wait, and differ only in their ids, traces and payloads.
// Its members are dispatched without ever having had a row of their own while they waited. Whatever else concerns a
// member first gives it a row of jobs, see leave. Cohorts are written only under the lock of the ledger.
// Why, and what it earns: docs/decisions/databases.md#jobs-that-wait-together-share-a-row

const (
	// leastMembers is below which a row for each job costs less.
	leastMembers = 4
	// mostPayload bounds the bytes of a cohort's payloads: they are read together.
	mostPayload = 32 << 10
)

// cohorts splits arrivals that begin as PENDING, which are in the order of their ranks, into those that share a row and
// those that get one each.
func (s *Store) cohorts(arrivals []dispatch.Arrival, b *dispatch.Blocks, l *dispatch.Ledger) (
	together [][]dispatch.Arrival, alone []dispatch.Arrival,
) {
	for len(arrivals) > 0 {
		n := 1
		if first := &arrivals[0]; mayShare(first, b, l) {
			payload := len(first.Payload)
			for n < min(len(arrivals), s.cohort) && share(first, &arrivals[n]) && mayShare(&arrivals[n], b, l) {
				if payload += len(arrivals[n].Payload); payload > mostPayload {
					break
				}
				n++
			}
		}
		if n < leastMembers {
			alone = append(alone, arrivals[:n]...)
		} else {
			together = append(together, arrivals[:n])
		}
		arrivals = arrivals[n:]
	}
	return together, alone
}

// mayShare reports whether a job that waits has only what a cohort has. A queue in which a cohort waits has jobs of one
// fairness key, so that rank alone orders it.
func mayShare(job *dispatch.Arrival, b *dispatch.Blocks, l *dispatch.Ledger) bool {
	return job.Status == jobstate.Pending && job.Partition == nil && job.Lane == "" && b.By(job.JobID) == "" &&
		job.RunAt == nil && job.ExpiresAt == nil && job.OrderingKey == "" && len(job.After) == 0 && len(job.Inputs) == 0 &&
		job.FlowID == uuid.Nil && job.Event == nil && !job.KeepBuild &&
		!l.UsesShares(job.Queue) && !l.UsesLanes(job.Queue) && !l.HasBuilds()
}

func share(a, b *dispatch.Arrival) bool {
	return jobevent.SameBlock(a.JobID, b.JobID) && a.Rank.Equal(b.Rank) && a.CreatedAt.Equal(b.CreatedAt) &&
		a.Queue == b.Queue && a.JobType == b.JobType && a.OwnerID == b.OwnerID &&
		dispatch.FairnessKeyOf(a.Created) == dispatch.FairnessKeyOf(b.Created) && a.Spec.Equal(&b.Spec)
}

// insertCohort inserts a cohort of new jobs.
func insertCohort(ctx context.Context, q *gen.Queries, jobs []dispatch.Arrival, history string) error {
	first := &jobs[0]
	all := int64(^uint64(0) >> (64 - len(jobs))) // a bit for each
	p := gen.CohortsInsertParams{
		FirstID: first.JobID, Rank: first.Rank, Waiting: all, Queue: first.Queue, JobType: first.JobType,
		Spec: first.Spec.Bytes(), OwnerID: first.OwnerID, FairnessKey: dispatch.FairnessKeyOf(first.Created),
		CreatedAt: first.CreatedAt, History: history,
	}
	for i := range jobs {
		p.JobIDs, p.TraceIDs = append(p.JobIDs, jobs[i].JobID), append(p.TraceIDs, jobs[i].TraceID)
		p.Payloads = append(p.Payloads, jobs[i].Payload)
	}
	if err := q.CohortsInsert(ctx, p); err != nil {
		return fmt.Errorf("insert cohort: %w", err)
	}
	return nil
}

// membersNamed returns the parameters that find jobs in cohorts.
func membersNamed(ids []uuid.UUID) gen.MembersNamedParams {
	p := gen.MembersNamedParams{JobIDs: ids}
	seen := map[uuid.UUID]bool{}
	for _, id := range ids {
		if from, to := jobevent.BlockOf(id); !seen[from] {
			seen[from] = true
			p.FromIDs, p.ToIDs = append(p.FromIDs, from), append(p.ToIDs, to)
		}
	}
	return p
}

func members(ctx context.Context, q *gen.Queries, ids []uuid.UUID) ([]gen.MembersNamedRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := q.MembersNamed(ctx, membersNamed(ids))
	if err != nil {
		return nil, fmt.Errorf("look for members of cohorts: %w", err)
	}
	return rows, nil
}

// memberSnapshot returns the state of a job that waits in a cohort.
func memberSnapshot(row gen.MembersNamedRow) emit.Snapshot {
	return emit.Snapshot{
		JobID: row.JobID, TraceID: row.TraceID, Status: string(jobstate.Pending), Version: 1, History: row.History,
		UpdatedAt: row.UpdatedAt, Queue: row.Queue, Rank: row.Rank, FairnessKey: row.FairnessKey,
	}
}

// leave gives those of the jobs that wait in cohorts rows of jobs. The caller has the ledger locked.
func leave(ctx context.Context, q *gen.Queries, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	if err := q.MembersLeave(ctx, gen.MembersLeaveParams(membersNamed(ids))); err != nil {
		return fmt.Errorf("give members of cohorts rows of their own: %w", err)
	}
	return nil
}

// leaveCohorts does so in a transaction of its own, since the caller's locks rows before the ledger.
func (s *Store) leaveCohorts(ctx context.Context, ids []uuid.UUID) error {
	rows, err := members(ctx, gen.New(s.pool), ids)
	if err != nil || len(rows) == 0 {
		return pgpool.Classify(err)
	}
	return s.locked(ctx, func(q *gen.Queries) error { return leave(ctx, q, ids) })
}

// leaveBest gives at least most of the best jobs of the cohorts of a queue rows of jobs, in which the picker sees them.
// It returns the best of the cohorts that are left; none: nil.
func leaveBest(ctx context.Context, q *gen.Queries, queue string, most int) (*gen.CohortBestRow, error) {
	ids, err := q.MembersBest(ctx, gen.MembersBestParams{QueueName: queue, Most: int32Of(most)})
	if err != nil {
		return nil, fmt.Errorf("look for the best cohorts of queue %s: %w", queue, err)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	if err := leave(ctx, q, ids); err != nil {
		return nil, err
	}
	left, err := q.CohortBest(ctx, queue)
	if err != nil {
		return nil, fmt.Errorf("look for the best cohort of queue %s: %w", queue, err)
	}
	if len(left) == 0 {
		return nil, nil
	}
	return &left[0], nil
}

// leaveAll gives all members of cohorts rows of jobs.
func (s *Store) leaveAll(ctx context.Context) error {
	for {
		n := 0
		err := s.locked(ctx, func(q *gen.Queries) error {
			ids, err := q.MembersSome(ctx, 100)
			if err != nil {
				return fmt.Errorf("look for cohorts: %w", err)
			}
			n = len(ids)
			return leave(ctx, q, ids)
		})
		if err != nil || n == 0 {
			return err
		}
	}
}
