package schedulerdb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// unservedPage is how many lanes of each count of the watchdog are looked at for jobs without a worker: 10,000 types
	// without one take twenty counts, 40 s.
	unservedPage = 500
	// unservedShown is how many lanes without a worker the metrics name, and how many may fail in one call of AskAgain.
	unservedShown = 100
)

// unservedLanes are the lanes of jobs that no live worker runs. The table has those that were noted before, with the
// times from which NO_WORKER_TIMEOUT counts: restarts of workers, databases or of the watchdog change none of them.
// Why: docs/decisions/dispatch.md#attempts-wait-by-the-kind-of-worker-that-can-run-them
type unservedLanes struct {
	queues, lanes         []string // not noted yet
	overQueues, overLanes []string // noted, and now a worker runs them or no job waits
	oldest                []gen.UnservedOldestRow
}

// countUnserved looks at a page of the lanes of kinds: the scheduler does not keep those that no worker runs, of which
// there may be any number.
func (s *Store) countUnserved(ctx context.Context, q *gen.Queries, l *dispatch.Ledger) (unservedLanes, error) {
	var u unservedLanes
	if queues := l.SortedQueues(); len(queues) > 0 {
		if err := s.lookAtKinds(ctx, q, l, queues, &u); err != nil {
			return u, err
		}
	}
	rows, err := q.UnservedOldest(ctx, unservedShown)
	if err != nil {
		return u, fmt.Errorf("list the lanes without a worker: %w", err)
	}
	for _, row := range rows {
		if !slices.Contains(u.overLanes, row.Lane) && !l.IsServed(row.Queue, row.Lane) {
			u.oldest = append(u.oldest, row)
		}
	}
	return u, nil
}

func (s *Store) lookAtKinds(
	ctx context.Context, q *gen.Queries, l *dispatch.Ledger, queues []string, u *unservedLanes,
) error {
	s.walks.Lock()
	defer s.walks.Unlock()
	each := max(unservedPage/len(queues), 10)
	ranges := make([]dispatch.Range, len(queues))
	for i, queue := range queues {
		ranges[i] = dispatch.AllKinds(queue)
		if after := s.walks.kinds[queue]; after != "" {
			ranges[i].From = after + "\x01" // the next lane after it, since a space follows in longer ones
		}
	}
	names, froms, tos := split(ranges)
	waiting, err := q.LanesOfKinds(ctx, gen.LanesOfKindsParams{
		Queues: names, FromLanes: froms, ToLanes: tos, Each: int32Of(each), Most: int32Of(len(queues) * each),
	})
	if err != nil {
		return fmt.Errorf("look for lanes without a worker: %w", err)
	}
	type key struct{ queue, lane string }
	without, looked := map[key]bool{}, map[string]int{}
	s.walks.kinds = map[string]string{}
	for _, row := range waiting {
		if looked[row.Queue]++; looked[row.Queue] == each {
			s.walks.kinds[row.Queue] = row.Lane
		}
		if !l.IsServed(row.Queue, row.Lane) {
			without[key{row.Queue, row.Lane}] = true
		}
	}
	for i, r := range ranges {
		if last := s.walks.kinds[r.Queue]; last != "" {
			tos[i] = last + "\x01"
		}
	}
	noted, err := q.UnservedIn(ctx, gen.UnservedInParams{Queues: names, FromLanes: froms, ToLanes: tos})
	if err != nil {
		return fmt.Errorf("read the lanes without a worker: %w", err)
	}
	for _, row := range noted {
		if at := (key{row.Queue, row.Lane}); without[at] {
			delete(without, at)
		} else {
			u.overQueues, u.overLanes = append(u.overQueues, row.Queue), append(u.overLanes, row.Lane)
		}
	}
	for at := range without {
		u.queues, u.lanes = append(u.queues, at.queue), append(u.lanes, at.lane)
	}
	return nil
}

// write notes and forgets lanes. Their queues stay sorted by type.
func (u *unservedLanes) write(ctx context.Context, q *gen.Queries, delta *dispatch.Delta) error {
	for _, row := range u.oldest {
		delta.NoteSorted(row.Queue)
	}
	if len(u.lanes) > 0 {
		if err := q.UnservedNote(ctx, gen.UnservedNoteParams{Queues: u.queues, Lanes: u.lanes}); err != nil {
			return fmt.Errorf("note lanes without a worker: %w", err)
		}
	}
	if len(u.overLanes) > 0 {
		if err := q.UnservedForget(ctx, gen.UnservedForgetParams{Queues: u.overQueues, Lanes: u.overLanes}); err != nil {
			return fmt.Errorf("forget lanes without a worker: %w", err)
		}
	}
	return nil
}

// figures returns the job types that have been without a worker for longest, and how many lanes there are.
func (u *unservedLanes) figures(at time.Time) (types []telemetry.NoWorker, lanes int) {
	for _, row := range u.oldest { // the oldest first
		known := slices.ContainsFunc(types, func(t telemetry.NoWorker) bool {
			return t.Queue == row.Queue && t.JobType == dispatch.TypeOf(row.Lane)
		})
		if !known {
			types = append(types, telemetry.NoWorker{
				Queue: row.Queue, JobType: dispatch.TypeOf(row.Lane), For: at.Sub(row.Since),
			})
		}
		lanes = int(row.Lanes)
	}
	return types, lanes
}

// failWithoutWorker fails jobs that have waited for NoWorkerTimeout for a worker that runs their type.
func (s *Store) failWithoutWorker(
	ctx context.Context, q *gen.Queries, counted Count, delta *dispatch.Delta,
) ([]emit.Snapshot, error) {
	var ids []uuid.UUID
	since := counted.at.Add(-s.cfg.NoWorkerTimeout)
	for _, lane := range counted.unserved.oldest {
		if s.cfg.NoWorkerTimeout == 0 || lane.Since.After(since) || len(ids) == AskMost {
			break
		}
		waiting, err := q.JobsWithoutWorker(ctx, gen.JobsWithoutWorkerParams{
			QueueName: lane.Queue, Lane: lane.Lane, Since: since, MaxJobs: int32Of(AskMost - len(ids)),
		})
		if err != nil {
			return nil, fmt.Errorf("find jobs that no worker runs: %w", err)
		}
		ids = append(ids, waiting...)
	}
	jobs, err := lockJobs(ctx, q, ids)
	if err != nil {
		return nil, err
	}
	for _, job := range jobs {
		job.failWithoutWorker(s.cfg.NoWorkerTimeout)
	}
	return saveJobs(ctx, q, jobs, delta)
}

func (j *lockedJob) failWithoutWorker(after time.Duration) {
	next, ok := j.FailWithoutWorker()
	if !ok {
		return
	}
	j.lastError = jobevent.Error{
		ErrorCode: string(apierror.NoWorker),
		Message:   fmt.Sprintf("no worker of queue %s has run job type %s for %s", j.row.Queue, j.row.JobType, after),
	}
	j.transition(next, jobevent.Transition{
		Attempt: j.Attempt, By: "watchdog", Reason: j.lastError.Message, ErrorCode: j.lastError.ErrorCode,
	})
}
