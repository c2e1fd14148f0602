package schedulerdb

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// What keeps a job from waiting for room.
const (
	byOrder      = "order"      // another job of its key has its turn, or is not known yet
	byDependency = "dependency" // a job that has to end first has not
)

// orderKey names jobs that run one after another.
type orderKey struct{ key, owner string }

func orderKeyOf(key, owner *string) (orderKey, bool) {
	return orderKey{orEmpty(key), orEmpty(owner)}, key != nil
}

// ties are what new jobs have to do with others. Nil for a batch in which none has anything to do with any.
type ties struct {
	ended    map[uuid.UUID]jobstate.Status  // of the jobs that others wait for, those that have ended
	complete map[uuid.UUID]bool             // jobs before which no job of their key is missing
	lines    map[orderKey]gen.OrderTakenRow // how the keys stand

	blockedBy map[uuid.UUID]string
	waitsFor  map[uuid.UUID][]uuid.UUID
	gaps      []*jobevent.Created // jobs that come after one that is not known
	tooLate   []uuid.UUID         // jobs that failed before others asked to wait for them
}

// tie finds out, under the lock of dispatching, what new jobs have to wait for beside room.
func tie(ctx context.Context, q *gen.Queries, jobs []jobevent.Created) (*ties, error) {
	var after, before []uuid.UUID
	var taken gen.OrderTakenParams
	for i := range jobs {
		job := &jobs[i]
		after = append(after, job.After...)
		if job.OrderingKey == "" {
			continue
		}
		taken.OrderingKeys = append(taken.OrderingKeys, job.OrderingKey)
		taken.OwnerIDs = append(taken.OwnerIDs, job.OwnerID)
		if job.OrderAfter != nil {
			before = append(before, *job.OrderAfter)
		}
	}
	if len(after) == 0 && len(taken.OrderingKeys) == 0 {
		return nil, nil
	}
	t := &ties{
		ended: map[uuid.UUID]jobstate.Status{}, complete: map[uuid.UUID]bool{}, lines: map[orderKey]gen.OrderTakenRow{},
		blockedBy: map[uuid.UUID]string{}, waitsFor: map[uuid.UUID][]uuid.UUID{},
	}
	if err := t.read(ctx, q, after, before, taken); err != nil {
		return nil, err
	}
	t.decide(jobs)
	return t, nil
}

func (t *ties) read(
	ctx context.Context, q *gen.Queries, after, before []uuid.UUID, taken gen.OrderTakenParams,
) error {
	ends, err := q.JobsEnds(ctx, after)
	if err != nil {
		return fmt.Errorf("read jobs that others wait for: %w", err)
	}
	for _, row := range ends {
		if status := jobstate.Status(row.Status); status.Terminal() {
			t.ended[row.JobID] = status
		}
	}
	complete, err := q.OrderKnown(ctx, before)
	if err != nil {
		return fmt.Errorf("read jobs that others come after: %w", err)
	}
	for _, id := range complete {
		t.complete[id] = true
	}
	keys, err := q.OrderTaken(ctx, taken)
	if err != nil {
		return fmt.Errorf("read whose turn it is: %w", err)
	}
	for _, key := range keys {
		t.lines[orderKey{key.OrderingKey, key.OwnerID}] = key
	}
	return nil
}

// decide takes the jobs in the order in which they were accepted.
func (t *ties) decide(jobs []jobevent.Created) {
	inOrder := make([]*jobevent.Created, len(jobs))
	for i := range jobs {
		inOrder[i] = &jobs[i]
	}
	slices.SortStableFunc(inOrder, func(a, b *jobevent.Created) int { return cmp.Compare(a.OrderNumber, b.OrderNumber) })
	for _, job := range inOrder {
		t.wait(job)
		if job.OrderingKey != "" {
			t.line(job)
		}
	}
}

func (t *ties) wait(job *jobevent.Created) {
	seen := make(map[uuid.UUID]bool, len(job.After))
	for _, id := range job.After {
		status, ended := t.ended[id]
		if seen[id] || ended && (status == jobstate.Completed || job.RunAnyway) {
			continue
		}
		seen[id] = true
		if ended {
			t.tooLate = append(t.tooLate, id)
		}
		t.waitsFor[job.JobID] = append(t.waitsFor[job.JobID], id)
		t.blockedBy[job.JobID] = byDependency
	}
}

// line has the job stand in line, unless it has its turn at once: then it is the next one that does.
func (t *ties) line(job *jobevent.Created) {
	key := orderKey{job.OrderingKey, job.OwnerID}
	if job.OrderAfter != nil && !t.complete[*job.OrderAfter] {
		t.gaps = append(t.gaps, job)
	} else {
		t.complete[job.JobID] = true
	}
	line := t.lines[key]
	isFirst := line.FirstInLine == 0 || job.OrderNumber < line.FirstInLine
	if line.HasTurn || !isFirst || !t.complete[job.JobID] {
		t.blockedBy[job.JobID] = byOrder
		if isFirst {
			line.FirstInLine = job.OrderNumber
		}
	} else {
		line.HasTurn = true
	}
	t.lines[key] = line
}

// blocks is what keeps a job from waiting for room; empty: nothing.
func (t *ties) blocks(id uuid.UUID) string {
	if t == nil {
		return ""
	}
	return t.blockedBy[id]
}

// addTo adds what ties a job to others to a statement to which the job has just been added.
func (t *ties) addTo(p *gen.JobsInsertParams, job *jobevent.Created) {
	if t == nil {
		return
	}
	last := len(p.JobIDs) - 1
	setLast(&p.BlockedBys, last, t.blockedBy[job.JobID])
	setLast(&p.WaitsFors, last, int32Of(len(t.waitsFor[job.JobID])))
	setLast(&p.RunsAnyways, last, job.RunAnyway)
	setLast(&p.OrderingKeys, last, job.OrderingKey)
	setLast(&p.OrderNumbers, last, job.OrderNumber)
}

// setLast sets the value of the last row of a statement. An array begins with the first row that has a value other than
// zero, and what it lacks at its end is null: most batches have none.
func setLast[T comparable](values *[]T, last int, value T) {
	var zero T
	if value == zero {
		return
	}
	*values = append(*values, make([]T, last-len(*values))...)
	*values = append(*values, value)
}

// insert writes what the inserted jobs wait for. What is known of now may be what others came after.
func (t *ties) insert(ctx context.Context, q *gen.Queries, l *ledger) error {
	if t == nil {
		return nil
	}
	var p gen.DependenciesInsertParams
	for id, after := range t.waitsFor {
		for _, afterID := range after {
			p.JobIDs, p.AfterIDs = append(p.JobIDs, id), append(p.AfterIDs, afterID)
		}
	}
	if len(p.JobIDs) > 0 {
		n, err := q.DependenciesInsert(ctx, p)
		if err != nil {
			return fmt.Errorf("insert dependencies: %w", err)
		}
		l.Dependents += n
		l.changed = true
	}
	var gaps gen.OrderGapsInsertParams
	for _, job := range t.gaps {
		gaps.JobIDs, gaps.OrderAfters = append(gaps.JobIDs, job.JobID), append(gaps.OrderAfters, *job.OrderAfter)
		gaps.OrderingKeys, gaps.OwnerIDs = append(gaps.OrderingKeys, job.OrderingKey), append(gaps.OwnerIDs, job.OwnerID)
	}
	if len(gaps.JobIDs) > 0 {
		if err := q.OrderGapsInsert(ctx, gaps); err != nil {
			return fmt.Errorf("insert gaps of an order: %w", err)
		}
	}
	l.ended = append(l.ended, t.tooLate...)
	return nil
}

// arrive closes the gaps in an order that these jobs were. Those behind them may be in line now.
func arrive(ctx context.Context, q *gen.Queries, l *ledger, ids []uuid.UUID) error {
	rows, err := q.OrderGapsClose(ctx, ids)
	if err != nil {
		return fmt.Errorf("close gaps of an order: %w", err)
	}
	for _, row := range rows {
		l.turns(orderKey{row.OrderingKey, row.OwnerID})
	}
	return nil
}

// arriveUnusable closes the gap that the job was, unless it comes itself after one that is not known.
func arriveUnusable(ctx context.Context, q *gen.Queries, l *ledger, job jobevent.Created) error {
	if job.OrderingKey == "" || job.OrderAfter == nil || *job.OrderAfter == job.JobID {
		return arrive(ctx, q, l, []uuid.UUID{job.JobID})
	}
	complete, err := q.OrderKnown(ctx, []uuid.UUID{*job.OrderAfter})
	if err != nil {
		return fmt.Errorf("read the job that an unusable one comes after: %w", err)
	}
	if len(complete) > 0 {
		return arrive(ctx, q, l, []uuid.UUID{job.JobID})
	}
	err = q.OrderGapsInsert(ctx, gen.OrderGapsInsertParams{
		OrderAfters: []uuid.UUID{*job.OrderAfter}, JobIDs: []uuid.UUID{job.JobID},
		OrderingKeys: []string{jobevent.CleanText(job.OrderingKey, nameMost)},
		OwnerIDs:     []string{jobevent.CleanText(job.OwnerID, nameMost)},
	})
	if err != nil {
		return fmt.Errorf("insert gap of an order: %w", err)
	}
	return nil
}

// settleTies writes what new jobs wait for, and releases at once what need not wait.
func (s *Store) settleTies(ctx context.Context, q *gen.Queries, t *ties, l *ledger) ([]Snapshot, error) {
	if err := t.insert(ctx, q, l); err != nil {
		return nil, err
	}
	if err := arrive(ctx, q, l, slices.Collect(maps.Keys(t.complete))); err != nil {
		return nil, err
	}
	return s.release(ctx, q, "ingest", l)
}
