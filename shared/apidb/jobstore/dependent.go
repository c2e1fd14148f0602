package jobstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// MissingError names the ids in a job's After that are not jobs of its owner.
type MissingError struct {
	Job int   // in the batch
	At  []int // the first few of them
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("job %d comes after %d or more that do not exist", e.Job, len(e.At))
}

// LateError is returned for a job that came too late to be accepted, that has the id of a deleted job, or whose batch
// takes no job.
type LateError struct {
	Job int // in the batch
	Why error
}

func (e *LateError) Error() string { return fmt.Sprintf("job %d: %s", e.Job, e.Why) }

func (e *LateError) Unwrap() error { return e.Why }

// anyDependent reports whether some of the jobs have an order, a dependency, a batch, a submit policy or a deadline of
// acceptance.
func anyDependent(jobs []NewJob) bool {
	for i := range jobs {
		if req := &jobs[i].Request; req.OrderingKey != "" || len(req.After) > 0 || req.BatchID != uuid.Nil ||
			req.Policies != (jobspec.Policies{}) || jobs[i].Late != nil {
			return true
		}
	}
	return false
}

// ErrCameBetween means that a concurrent submit has inserted a job that conflicts with a job of this transaction, which
// has its place in an order already. The transaction has to be tried again.
var ErrCameBetween = errors.New("another submit came between")

// insertDependent accepts jobs, some of which have an ordering key or depend on other jobs.
func (s *Store) insertDependent(ctx context.Context, jobs []NewJob, all bool) (accepted []Accepted, err error) {
	for range InsertTries {
		err = s.db.Tx(ctx, func(q *gen.Queries) error {
			t := dependents{q: q, jobs: jobs, accepted: make([]Accepted, len(jobs)), debounce: newDebounce()}
			if err := t.insert(ctx); err != nil {
				return err
			}
			accepted = t.accepted
			if err := checkNotDeleted(ctx, q, jobs, accepted); err != nil {
				return err
			}
			if all {
				if err := t.refusal(); err != nil {
					return err
				}
			}
			return enterSubmits(ctx, q, jobs, accepted)
		})
		if !errors.Is(err, ErrCameBetween) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("insert %d jobs that are tied: %w", len(jobs), err)
	}
	return accepted, nil
}

// dependents is one try to accept jobs in one transaction.
type dependents struct {
	q        *gen.Queries
	jobs     []NewJob
	accepted []Accepted
	copies   map[int]int // by the ordinal of a request: the ordinal of the job of this transaction that answers it
	flow     bool        // the jobs may depend on each other
	held     map[keyed]*held
	debounce *debounce // nil: no job is debounced, which is true for jobs of schedules and batches
	joined   bool      // their batch is closed, and kept from ending
	elements bool      // of a fan-out: their batch is closed, and what they come after was checked with the flow
}

// insert first handles the jobs that need no place in an order, because holding the lock of a key delays all submits
// with that key.
func (t *dependents) insert(ctx context.Context) error {
	open := make([]int, len(t.jobs)) // ordinals without a result
	for i := range open {
		open[i] = i
	}
	open, err := t.lookUp(ctx, open)
	if err != nil {
		return err
	}
	if open, err = t.join(ctx, t.refuseLate(open)); err != nil {
		return err
	}
	fresh, repeated := t.split(open)
	if fresh, repeated, err = t.decide(ctx, fresh, repeated); err != nil {
		return err
	}
	slices.SortStableFunc(fresh, func(a, b int) int { return compareKeys(&t.jobs[a], &t.jobs[b]) })
	rows, err := insertRows(ctx, t.q, t.merged(), fresh, t.accepted)
	if err != nil {
		return err
	}
	if left := takeInserted(t.jobs, fresh, rows, t.accepted); len(left) > 0 {
		return ErrCameBetween
	}
	if t.debounce != nil {
		if err := t.debounce.replace(t, ctx); err != nil {
			return err
		}
	}
	t.copyAccepted()
	if repeated, err = t.lookUp(ctx, repeated); err == nil && len(repeated) > 0 {
		return ErrCameBetween
	}
	return err
}

// join refuses the jobs that cannot have their place among others, and returns the others.
func (t *dependents) join(ctx context.Context, open []int) ([]int, error) {
	if t.elements {
		return open, nil
	}
	open, err := t.refuseMissing(ctx, open)
	if err != nil || t.joined {
		return open, err
	}
	return t.joinBatches(ctx, open)
}

// lookUp fills in the results of jobs that exist and returns the ordinals of the others.
func (t *dependents) lookUp(ctx context.Context, open []int) ([]int, error) {
	for _, i := range open {
		if job := &t.jobs[i]; job.Request.IdempotencyKey != "" || job.EventID != "" {
			open, err := lookUp(ctx, t.q, t.jobs, open, t.accepted)
			if err != nil || t.debounce == nil {
				return open, err
			}
			return t.debounce.lookUp(t, ctx, open)
		}
	}
	return open, nil
}

// split separates the first job of each idempotency key and event from those that repeat it.
func (t *dependents) split(open []int) (fresh, repeated []int) {
	seen := names{}
	for _, i := range open {
		if seen.has(&t.jobs[i]) {
			repeated = append(repeated, i)
			continue
		}
		seen.add(&t.jobs[i])
		fresh = append(fresh, i)
	}
	return fresh, repeated
}

// names are the idempotency keys and events of jobs.
type names map[name]bool

type name struct{ kind, owner, space, name string }

func namesOf(job *NewJob) (all []name) {
	if key := job.Request.IdempotencyKey; key != "" {
		all = append(all, name{"key", job.Request.OwnerID, "", key})
	}
	if job.EventID != "" {
		all = append(all, name{"event", job.Whose.ID(), job.EventSource, job.EventID})
	}
	return all
}

func (n names) has(job *NewJob) bool {
	return slices.ContainsFunc(namesOf(job), func(of name) bool { return n[of] })
}

func (n names) add(job *NewJob) {
	for _, of := range namesOf(job) {
		n[of] = true
	}
}

// refuseLate refuses the jobs that came too late, and returns the others.
func (t *dependents) refuseLate(open []int) []int {
	return slices.DeleteFunc(open, func(i int) bool {
		t.accepted[i].Late = t.jobs[i].Late
		return t.jobs[i].Late != nil
	})
}

// refuseMissing refuses the jobs that depend on ids that are not jobs of their owner, and returns the others. A job
// that was deleted before counts as missing. A job that is deleted later does not: the scheduler remembers how it ended
// for as long as an old event may still arrive.
func (t *dependents) refuseMissing(ctx context.Context, open []int) ([]int, error) {
	asked := map[string][]uuid.UUID{}
	for _, i := range open {
		if req := &t.jobs[i].Request; len(req.After) > 0 {
			asked[req.OwnerID] = append(asked[req.OwnerID], req.After...)
		}
	}
	missing := map[string]map[uuid.UUID]bool{}
	siblings := map[uuid.UUID]bool{}
	for i := range t.jobs {
		siblings[t.jobs[i].JobID] = t.flow
	}
	for owner, ids := range asked {
		gone, err := t.q.JobsMissing(ctx, gen.JobsMissingParams{AfterIDs: ids, OwnerID: owner})
		if err != nil {
			return nil, err
		}
		missing[owner] = make(map[uuid.UUID]bool, len(gone))
		for _, id := range gone {
			missing[owner][id] = !siblings[id]
		}
	}
	return slices.DeleteFunc(open, func(i int) bool {
		req, a := &t.jobs[i].Request, &t.accepted[i]
		for at, id := range req.After {
			if missing[req.OwnerID][id] && len(a.Missing) < strictjson.MaxProblems {
				a.Missing = append(a.Missing, at)
			}
		}
		return len(a.Missing) > 0
	}), nil
}

// refusal returns an error if a job was refused.
func (t *dependents) refusal() error {
	for i, a := range t.accepted {
		switch {
		case a.Conflict:
			return apidb.ErrConflict
		case len(a.Missing) > 0:
			return &MissingError{Job: i, At: a.Missing}
		case a.Late != nil:
			return &LateError{Job: i, Why: a.Late}
		}
	}
	return nil
}

// InsertAllInTx inserts all jobs in a transaction that makes other changes, too, or returns an error as InsertAllJobs
// does, or ErrCameBetween. Jobs of a flow may depend on each other; all are new.
func InsertAllInTx(ctx context.Context, q *gen.Queries, jobs []NewJob, flow bool) ([]Accepted, error) {
	t := dependents{q: q, jobs: jobs, accepted: make([]Accepted, len(jobs)), flow: flow}
	if err := t.insert(ctx); err != nil {
		return nil, err
	}
	if err := checkNotDeleted(ctx, q, jobs, t.accepted); err != nil {
		return nil, err
	}
	return t.accepted, t.refusal()
}

// InsertFlowRunInTx is InsertAllInTx for the jobs of another run of a flow, which the caller has locked.
func InsertFlowRunInTx(ctx context.Context, q *gen.Queries, jobs []NewJob) ([]Accepted, error) {
	t := dependents{q: q, jobs: jobs, accepted: make([]Accepted, len(jobs)), flow: true, joined: true}
	if err := t.insert(ctx); err != nil {
		return nil, err
	}
	return t.accepted, t.refusal()
}

// InsertElementsInTx is InsertAllInTx for the jobs of a fan-out, while its batch is kept from ending.
func InsertElementsInTx(ctx context.Context, q *gen.Queries, jobs []NewJob) ([]Accepted, error) {
	t := dependents{q: q, jobs: jobs, accepted: make([]Accepted, len(jobs)), elements: true}
	for i := range jobs {
		t.accepted[i].Place = jobs[i].Place
	}
	if err := t.insert(ctx); err != nil {
		return nil, err
	}
	return t.accepted, t.refusal()
}

// InsertInTx inserts jobs in a transaction that makes other changes, too.
func InsertInTx(ctx context.Context, q *gen.Queries, jobs []NewJob) ([]Accepted, error) {
	if !anyDependent(jobs) {
		return insertJobs(ctx, q, jobs)
	}
	t := dependents{q: q, jobs: jobs, accepted: make([]Accepted, len(jobs))}
	err := t.insert(ctx)
	return t.accepted, err
}
