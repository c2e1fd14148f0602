package schedulerdb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// A cohort is one row for jobs that were accepted together and differ only in their ids, traces and payloads. Its
// members wait, are dispatched and complete without ever having had a row of their own: those that complete together
// share a row of ended_cohorts. Whatever else happens to a member first gives it a row, see leave and reviveJobs.
// Cohorts are written only under the lock of the ledger.
// Why, and what it earns: docs/decisions/databases.md#jobs-that-fare-alike-share-a-row

const (
	// leastMembers is below which a row for each job costs less.
	leastMembers = 4
	// mostPayload bounds the bytes of a cohort's payloads, and of the outputs of jobs that completed together: they are
	// read together.
	mostPayload = 32 << 10
)

// cohorts splits arrivals, which are in the order of their ranks and ids, into those that share a row and those that
// get one each.
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

// mayShare reports whether a new job has only what a cohort has. A queue in which a cohort waits has jobs of one
// fairness key, so that rank alone orders it.
func mayShare(job *dispatch.Arrival, b *dispatch.Blocks, l *dispatch.Ledger) bool {
	begins := job.Status == jobstate.Pending || job.Status == jobstate.Queued
	return begins && job.Lane == "" && b.By(job.JobID) == "" &&
		job.RunAt == nil && job.ExpiresAt == nil && job.OrderingKey == "" && len(job.After) == 0 && len(job.Inputs) == 0 &&
		job.FlowID == uuid.Nil && job.Event == nil && !job.KeepBuild &&
		!l.UsesShares(job.Queue) && !l.UsesLanes(job.Queue) && !l.HasBuilds()
}

func share(a, b *dispatch.Arrival) bool {
	return jobevent.SameBlock(a.JobID, b.JobID) && a.Rank.Equal(b.Rank) && a.CreatedAt.Equal(b.CreatedAt) &&
		a.Status == b.Status && a.Queue == b.Queue && a.JobType == b.JobType && a.OwnerID == b.OwnerID &&
		dispatch.FairnessKeyOf(a.Created) == dispatch.FairnessKeyOf(b.Created) && a.Spec.Equal(&b.Spec)
}

// insertCohort inserts a cohort of new jobs, which all begin in the same state.
func insertCohort(ctx context.Context, q *gen.Queries, jobs []dispatch.Arrival, begin *gen.JobsInsertParams) error {
	first := &jobs[0]
	all := int64(^uint64(0) >> (64 - len(jobs))) // a bit for each
	p := gen.CohortsInsertParams{
		FirstID: first.JobID, Rank: first.Rank, Waiting: all, Queue: first.Queue, JobType: first.JobType,
		Spec: first.Spec.Bytes(), OwnerID: first.OwnerID, FairnessKey: dispatch.FairnessKeyOf(first.Created),
		CreatedAt: first.CreatedAt, History: begin.History,
	}
	var partitions []int16
	for i := range jobs {
		p.JobIDs, p.TraceIDs = append(p.JobIDs, jobs[i].JobID), append(p.TraceIDs, jobs[i].TraceID)
		p.Payloads = append(p.Payloads, jobs[i].Payload)
		if jobs[i].Partition != nil {
			partitions = append(partitions, *jobs[i].Partition)
		}
	}
	if len(partitions) > 0 {
		p.Waiting, p.Out = 0, all
	}
	if err := q.CohortsInsert(ctx, p); err != nil {
		return fmt.Errorf("insert cohort: %w", err)
	}
	if len(partitions) == 0 {
		return nil
	}
	err := q.DispatchedInsert(ctx, gen.DispatchedInsertParams{
		FirstID: first.JobID, Places: all, Partitions: partitions, LeaseExpiresAt: *begin.LeaseExpiresAt,
	})
	if err != nil {
		return fmt.Errorf("insert dispatched cohort: %w", err)
	}
	return nil
}

// membersNamed returns the parameters that find jobs in cohorts.
func membersNamed(ids []uuid.UUID) (p gen.MembersNamedParams) {
	blocks := map[uuid.UUID]int{}
	for _, id := range ids {
		from, to := jobevent.InBlock(id, 0), jobevent.InBlock(id, jobevent.BlockSize-1)
		block, some := blocks[from]
		if !some {
			block, blocks[from] = len(blocks), len(blocks)
			p.FromIDs, p.ToIDs, p.Wanted = append(p.FromIDs, from), append(p.ToIDs, to), append(p.Wanted, 0)
		}
		p.Wanted[block] |= 1 << jobevent.PlaceInBlock(id)
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

// memberSnapshot returns the state of a job in a cohort.
func memberSnapshot(row gen.MembersNamedRow) emit.Snapshot {
	return emit.Snapshot{
		JobID: row.JobID, TraceID: row.TraceID, Status: row.Status, Version: row.Version, Attempt: row.Attempt,
		History: row.History, UpdatedAt: row.UpdatedAt, Queue: row.Queue, Rank: row.Rank, FairnessKey: row.FairnessKey,
		Output: row.Output, StartedAt: row.StartedAt, FinishedAt: row.FinishedAt,
	}
}

// membersParams returns the parameters that complete those of the attempts whose jobs are in cohorts: first ones. The
// outcomes are in the order of their jobs' ids, and no two are of one job.
func membersParams(outcomes []Outcome) (p gen.MembersCompleteParams) {
	var firsts []*Outcome
	for i := range outcomes {
		if outcomes[i].Attempt == 1 {
			firsts = append(firsts, &outcomes[i])
		}
	}
	slices.SortStableFunc(firsts, func(a, b *Outcome) int {
		blocks := compareIDs(jobevent.InBlock(a.JobID, 0), jobevent.InBlock(b.JobID, 0))
		return cmp.Or(blocks, cmp.Compare(a.ranBy(), b.ranBy()))
	})
	size := 0 // of the outputs of a part, which are read together
	for i, o := range firsts {
		if i == 0 || !jobevent.SameBlock(o.JobID, firsts[i-1].JobID) || o.ranBy() != firsts[i-1].ranBy() ||
			size > 0 && size+len(o.Output) > mostPayload {
			size = 0
			p.BlockIDs, p.LastIDs = append(p.BlockIDs, jobevent.InBlock(o.JobID, 0)),
				append(p.LastIDs, jobevent.InBlock(o.JobID, jobevent.BlockSize-1))
			p.WorkerIDs, p.Wanted, p.Befores = append(p.WorkerIDs, o.ranBy()), append(p.Wanted, 0), append(p.Befores, int32Of(i))
		}
		size += len(o.Output)
		p.Wanted[len(p.Wanted)-1] |= 1 << jobevent.PlaceInBlock(o.JobID)
		p.StartedAts = append(p.StartedAts, nullable.Value(o.StartedAt))
		p.FinishedAts = append(p.FinishedAts, nullable.Value(o.FinishedAt))
		if o.Output != nil { // most have none
			p.Outputs = append(p.Outputs, make([]json.RawMessage, i-len(p.Outputs))...)
			p.Outputs = append(p.Outputs, o.Output)
		}
	}
	return p
}

// completedMembers returns a row for each job that MembersComplete has written. entries are the ends of the outcomes'
// transitions.
func completedMembers(outcomes []Outcome, entries []string, rows []gen.MembersCompleteRow) []gen.JobsCompleteRow {
	var completed []gen.JobsCompleteRow
	for i := range rows {
		row := &rows[i]
		history := row.History + `,{"at":` + row.At + `,"from":"QUEUED",`
		n := 0
		for left := uint64(row.Places); left != 0; left &= left - 1 {
			id := jobevent.InBlock(row.BlockID, bits.TrailingZeros64(left))
			at, _ := slices.BinarySearchFunc(outcomes, id, compareJob)
			completed = append(completed, gen.JobsCompleteRow{
				JobID: id, TraceID: row.TraceIDs[n], Version: row.Version, Attempt: 1, History: history + entries[at],
				UpdatedAt: row.UpdatedAt, Queue: row.Queue, Partition: &row.Partitions[n], OwnerID: row.OwnerID,
				JobType: row.JobType, FairnessKey: row.FairnessKey, WasOut: true,
			})
			n++
		}
	}
	return completed
}

// removeCompleted removes what MembersComplete has written from its cohorts. The ledger is locked. If a job has left
// its cohort meanwhile, the error is errMoved.
func removeCompleted(ctx context.Context, q *gen.Queries, rows []gen.MembersCompleteRow) error {
	jobs := make([]gen.MembersLeaveRow, len(rows))
	for i, row := range rows {
		jobs[i] = gen.MembersLeaveRow{FirstID: row.FirstID, Places: row.Dispatched, Mask: row.Masks}
	}
	return remove(ctx, q, jobs)
}

// remove removes jobs from their cohorts. If one is not there, the error is errMoved.
func remove(ctx context.Context, q *gen.Queries, jobs []gen.MembersLeaveRow) error {
	if len(jobs) == 0 {
		return nil
	}
	var p gen.MembersRemoveParams
	wholes, parts := map[uuid.UUID]int{}, map[gen.MembersLeaveRow]int{}
	for _, job := range jobs {
		whole, some := wholes[job.FirstID]
		if !some {
			whole, wholes[job.FirstID] = len(wholes), len(wholes)
			p.FirstIDs, p.Waiting, p.Out = append(p.FirstIDs, job.FirstID), append(p.Waiting, 0), append(p.Out, 0)
		}
		if job.Places == 0 {
			p.Waiting[whole] |= job.Mask
			continue
		}
		p.Out[whole] |= job.Mask
		key := gen.MembersLeaveRow{FirstID: job.FirstID, Places: job.Places}
		part, some := parts[key]
		if !some {
			part, parts[key] = len(parts), len(parts)
			p.PartIDs, p.Places, p.PartOut = append(p.PartIDs, job.FirstID), append(p.Places, job.Places), append(p.PartOut, 0)
		}
		p.PartOut[part] |= job.Mask
	}
	n, err := q.MembersRemove(ctx, p)
	if err != nil {
		return fmt.Errorf("remove members of cohorts: %w", err)
	}
	if int(n) < len(p.FirstIDs) {
		return errMoved
	}
	return nil
}

// leave gives those of the jobs that are in cohorts rows of jobs. The caller has the ledger locked.
func leave(ctx context.Context, q *gen.Queries, ids []uuid.UUID) error {
	rows, err := q.MembersLeave(ctx, gen.MembersLeaveParams(membersNamed(ids)))
	if err != nil {
		return fmt.Errorf("give members of cohorts rows of their own: %w", err)
	}
	return remove(ctx, q, rows)
}

// leaveCohorts does so in a transaction of its own, since the caller's locks rows before the ledger.
func (s *Store) leaveCohorts(ctx context.Context, ids []uuid.UUID) error {
	rows, err := members(ctx, gen.New(s.pool), ids)
	if err != nil || !slices.ContainsFunc(rows, isOpen) {
		return pgpool.Classify(err)
	}
	return s.locked(ctx, func(q *gen.Queries) error { return leave(ctx, q, ids) })
}

func isOpen(row gen.MembersNamedRow) bool { return row.FinishedAt == nil }

// leaveBest gives at least most of the best jobs that wait in the cohorts of a queue rows of jobs, in which the picker
// sees them. No job ranks below the floor.
func leaveBest(ctx context.Context, q *gen.Queries, queue string, floor time.Time, most int) error {
	ids, err := q.MembersBest(ctx, gen.MembersBestParams{QueueName: queue, Floor: floor, Most: int32Of(most)})
	if err != nil {
		return fmt.Errorf("look for the best cohorts of queue %s: %w", queue, err)
	}
	if len(ids) == 0 {
		return nil
	}
	return leave(ctx, q, ids)
}

// leaveUnlisted gives members of cohorts that no worker has listed for a lease rows of jobs, in which AskAgain finds
// them.
func (s *Store) leaveUnlisted(ctx context.Context) error {
	ids, err := gen.New(s.pool).MembersUnlisted(ctx, gen.MembersUnlistedParams{Lease: s.cfg.Lease, Most: AskMost})
	if err != nil || len(ids) == 0 {
		return pgpool.Classify(err)
	}
	return s.locked(ctx, func(q *gen.Queries) error { return leave(ctx, q, ids) })
}

// leaveAll gives all members of cohorts rows of jobs or ended.
func (s *Store) leaveAll(ctx context.Context) error {
	q := gen.New(s.pool)
	for {
		rows, err := q.EndedCohortsOld(ctx, gen.EndedCohortsOldParams{UntilID: uuid.Max, Most: 100})
		if err != nil {
			return fmt.Errorf("look for cohorts that ended: %w", pgpool.Classify(err))
		}
		if len(rows) == 0 {
			break
		}
		var p gen.EndedMembersLeaveParams
		for _, row := range rows {
			p.BlockIDs, p.Wanted = append(p.BlockIDs, row.BlockID), append(p.Wanted, row.Places)
		}
		if err := q.EndedMembersLeave(ctx, p); err != nil {
			return fmt.Errorf("give jobs that completed in cohorts rows of their own: %w", pgpool.Classify(err))
		}
	}
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
