package jobstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// NewJob is a valid request for a job.
type NewJob struct {
	JobID       uuid.UUID
	TraceID     uuid.UUID
	Request     jobspec.Request
	RequestHash []byte // of the canonical request; stored with an idempotency key
	EventSource string // of the CloudEvent with the request; empty: there was none
	EventID     string
	Whose       apidb.Owner  // the owner that sees a repeated event, which is the request's; Everyone: any owner
	Audit       *apidb.Audit // the same for all jobs of a request; nil: authentication is off
	TraceParent string       // of the client, if it differs from the request's trace; not stored
	InFlow      bool         // its batch is a flow
	Awaited     bool         // the request waits for the job's end; not stored
	Late        error        // why only a repeated request is accepted; nil: a new job is accepted, too
	Place       Place        // in the order of its key, of the job of an element; zero: after all accepted jobs

	// SealFor returns the payload of a debounced request, sealed for the job that it changes; nil: it is not sealed.
	SealFor func(uuid.UUID) json.RawMessage
}

// Place is where a job stands among the jobs of its ordering key.
type Place struct {
	OrderNumber int64      // rising in the order of acceptance; 0: the job has no ordering key
	OrderAfter  *uuid.UUID // the previous job of the key; nil: all previous ones have ended
}

// payloadFor returns the payload as another job stores it.
func (n *NewJob) payloadFor(id uuid.UUID) json.RawMessage {
	if n.SealFor == nil {
		return n.Request.Payload
	}
	return n.SealFor(id)
}

// Held reports whether a new job must not be published yet, because further requests may change it.
func (n *NewJob) Held() bool { return n.Request.Debounce != nil }

// Accepted is the result of a request for a job.
type Accepted struct {
	JobID     uuid.UUID
	TraceID   uuid.UUID
	RunAt     *time.Time
	CreatedAt time.Time
	Replayed  bool // the job existed before, or is earlier in the same batch
	Conflict  bool // its idempotency key belongs to JobID, whose request differs

	Place

	Missing []int // the first indexes in After that are not jobs of the owner, so it was refused
	Late    error // why the request was refused: NewJob.Late, its job is deleted, its batch takes no job, or a policy

	DecidedBy string          // the policy by which the request got a job that exists; empty: none
	Found     jobstate.Status // of that job; empty: as at acceptance
}

// Existed reports whether the request got a job that existed, or one that is earlier in the same batch.
func (a *Accepted) Existed() bool { return a.Replayed || a.DecidedBy != "" }

// Merged reports whether the request has changed a job that is held.
func (a *Accepted) Merged() bool { return a.DecidedBy == ByDebounce && !a.Replayed }

// New reports whether the request has become a new job.
func (a *Accepted) New() bool {
	return !a.Existed() && len(a.Missing) == 0 && a.Late == nil
}

// Status returns the job's status at acceptance, so that a repeated request gets the same answer, or that of a job that
// a policy has found.
func (a Accepted) Status() jobstate.Status {
	if a.Found != "" {
		return a.Found
	}
	if a.RunAt != nil && a.RunAt.After(a.CreatedAt) {
		return jobstate.Scheduled
	}
	return jobstate.Pending
}

// Created returns the job as it was accepted.
func (a Accepted) Created(job NewJob) jobevent.Created {
	req := &job.Request
	flow := uuid.Nil
	if job.InFlow {
		flow = req.BatchID
	}
	return jobevent.Created{
		FlowID: flow,
		JobID:  a.JobID, TraceID: a.TraceID, OwnerID: req.OwnerID, FairnessKey: req.OwnFairnessKey(),
		JobType: req.JobType, Queue: queueOf(req), Payload: req.Payload, Spec: req.Spec,
		RunAt: a.RunAt, CreatedAt: a.CreatedAt,
		ExpiresAt: req.ExpiresAt, OrderingKey: req.LineKey(), OrderNumber: a.OrderNumber, OrderAfter: a.OrderAfter,
		After: req.After, RunAnyway: req.RunAnyway, Conditions: req.Conditions, Inputs: req.Inputs,
		Event: req.Event, Awaited: job.Awaited,
	}
}

// queueOf returns the queue in which the scheduler is to know a job. JobsUnconfirmed does the same.
func queueOf(req *jobspec.Request) string {
	if req.ForEach != nil {
		return jobevent.FanOutQueue
	}
	return req.Queue
}

// InsertJobs accepts many jobs in one statement; a second statement looks up those that existed before. The results
// are in the order of jobs.
func (s *Store) InsertJobs(ctx context.Context, jobs []NewJob) ([]Accepted, error) {
	if err := checkWhose(jobs); err != nil {
		return nil, err
	}
	from := s.db.Mark()
	jobs, accepted, err := refusingDeleted(ctx, jobs, s.insertSome)
	s.takeInsertTime(ctx, from, accepted)
	s.CountAccepted(jobs, accepted)
	return accepted, err
}

// checkWhose refuses a job that belongs to another owner than its submitter.
func checkWhose(jobs []NewJob) error {
	for i := range jobs {
		if job := &jobs[i]; !job.Whose.Sees(job.Request.OwnerID) {
			return fmt.Errorf("insert job %s: it belongs to another owner", job.JobID)
		}
	}
	return nil
}

func (s *Store) insertSome(ctx context.Context, jobs []NewJob) ([]Accepted, error) {
	switch {
	case anyDependent(jobs):
		return s.insertDependent(ctx, jobs, false)
	case isUniform(jobs) && !answeredFor(jobs):
		accepted, err := insertUniform(ctx, s.q, jobs)
		return accepted, apidb.Classify("insert jobs", err)
	case len(jobs) == 1 && jobs[0].Request.JobID == uuid.Nil && !answeredFor(jobs):
		// A statement alone waits for another transaction's commit without holding locks: no deadlock.
		accepted, err := insertJobs(ctx, s.q, jobs)
		return accepted, apidb.Classify("insert job", err)
	}
	return s.insertBatch(ctx, jobs, false)
}

// InsertAllJobs accepts all jobs, or none with an ErrConflict, a *MissingError or a *LateError.
func (s *Store) InsertAllJobs(ctx context.Context, jobs []NewJob) ([]Accepted, error) {
	if err := checkWhose(jobs); err != nil {
		return nil, err
	}
	from := s.db.Mark()
	accepted, err := s.insertAll(ctx, jobs)
	s.takeInsertTime(ctx, from, accepted)
	s.CountAccepted(jobs, accepted)
	return accepted, err
}

func (s *Store) insertAll(ctx context.Context, jobs []NewJob) ([]Accepted, error) {
	switch {
	case anyDependent(jobs):
		return s.insertDependent(ctx, jobs, true)
	case len(jobs) > 1 && !isUniform(jobs):
		return s.insertBatch(ctx, jobs, true)
	}
	accepted, err := s.insertSome(ctx, jobs)
	if err == nil && len(jobs) == 1 && accepted[0].Conflict {
		return nil, apidb.ErrConflict
	}
	return accepted, err
}

func (s *Store) insertBatch(ctx context.Context, jobs []NewJob, all bool) (accepted []Accepted, err error) {
	insert := insertJobs
	if isUniform(jobs) {
		insert = insertUniform
	}
	err = s.db.Tx(ctx, func(q *gen.Queries) error {
		if accepted, err = insert(ctx, q, jobs); err != nil {
			return err
		}
		if all && slices.ContainsFunc(accepted, func(a Accepted) bool { return a.Conflict }) {
			return apidb.ErrConflict
		}
		if err := checkNotDeleted(ctx, q, jobs, accepted); err != nil {
			return err
		}
		return enterSubmits(ctx, q, jobs, accepted)
	})
	if err != nil {
		return nil, fmt.Errorf("insert %d jobs: %w", len(jobs), err)
	}
	return accepted, nil
}

// InsertTries is how often an insert is tried: a conflicting job can be gone when it is looked up.
const InsertTries = 3

func insertJobs(ctx context.Context, q *gen.Queries, jobs []NewJob) ([]Accepted, error) {
	accepted := make([]Accepted, len(jobs))
	open := make([]int, len(jobs)) // ordinals without a result
	for i := range open {
		open[i] = i
	}
	// Batches that share keys insert them in the same order, or they would deadlock.
	slices.SortStableFunc(open, func(a, b int) int { return compareKeys(&jobs[a], &jobs[b]) })
	for range InsertTries {
		rows, err := insertRows(ctx, q, jobs, open, accepted)
		if err != nil {
			return nil, err
		}
		open = takeInserted(jobs, open, rows, accepted)
		if len(open) == 0 {
			return accepted, nil
		}
		if open, err = lookUp(ctx, q, jobs, open, accepted); err != nil {
			return nil, err
		}
		if len(open) == 0 {
			return accepted, nil
		}
	}
	return nil, fmt.Errorf("find the jobs in the way of %d others: they come and go", len(open))
}

// insertRows inserts jobs with the order numbers in accepted.
func insertRows(
	ctx context.Context, q *gen.Queries, jobs []NewJob, open []int, accepted []Accepted,
) ([]gen.JobInsertManyRow, error) {
	return q.JobInsertMany(ctx, insertParams(jobs, open, accepted))
}

// lookUp fills in the results of jobs that exist and returns the ordinals of the others. Such a result promises as
// much as the first one, so its transaction waits for the replicas, too.
func lookUp(ctx context.Context, q *gen.Queries, jobs []NewJob, open []int, accepted []Accepted) ([]int, error) {
	known, err := q.JobsInTheWay(ctx, wayParams(jobs, open))
	if err != nil {
		return nil, err
	}
	if len(known) > 0 {
		if err := q.AwaitReplicas(ctx); err != nil {
			return nil, err
		}
	}
	return takeKnown(jobs, open, known, accepted), nil
}

func compareKeys(a, b *NewJob) int {
	return cmp.Or(
		strings.Compare(a.Request.OwnerID, b.Request.OwnerID),
		strings.Compare(a.Request.IdempotencyKey, b.Request.IdempotencyKey),
		strings.Compare(a.EventSource, b.EventSource),
		strings.Compare(a.EventID, b.EventID))
}

// takeInserted fills in the results of the inserted jobs and returns the ordinals of the others.
func takeInserted(jobs []NewJob, open []int, rows []gen.JobInsertManyRow, accepted []Accepted) []int {
	// If several jobs have the same id, only the first was inserted.
	inserted := make(map[uuid.UUID]*gen.JobInsertManyRow, len(rows))
	for i := range rows {
		inserted[rows[i].JobID] = &rows[i]
	}
	return slices.DeleteFunc(open, func(i int) bool {
		row := inserted[jobs[i].JobID]
		if row == nil {
			return false
		}
		delete(inserted, jobs[i].JobID)
		a := &accepted[i]
		a.JobID, a.TraceID, a.RunAt, a.CreatedAt = row.JobID, jobs[i].TraceID, row.RunAt, row.CreatedAt
		return true
	})
}

func takeKnown(jobs []NewJob, open []int, rows []gen.JobsInTheWayRow, accepted []Accepted) []int {
	found := map[int]*gen.JobsInTheWayRow{}
	for i := range rows {
		if at := int(rows[i].Ordinal); found[at] == nil || rows[i].ByEvent {
			found[at] = &rows[i]
		}
	}
	return slices.DeleteFunc(open, func(i int) bool {
		row := found[i]
		if row == nil {
			return false
		}
		if !jobs[i].Whose.Sees(row.OwnerID) { // an event accepted for another owner while authentication was off
			accepted[i] = Accepted{Replayed: true, Conflict: true}
			return true
		}
		accepted[i] = Accepted{
			JobID: row.JobID, TraceID: row.TraceID, RunAt: row.RunAt, CreatedAt: row.CreatedAt, Replayed: true,
			Conflict: !row.ByEvent && (!bytes.Equal(row.RequestHash, jobs[i].RequestHash) ||
				jobs[i].Request.JobID != uuid.Nil && row.JobID != jobs[i].JobID),
		}
		return true
	})
}

func wayParams(jobs []NewJob, open []int) gen.JobsInTheWayParams {
	var p gen.JobsInTheWayParams
	for _, i := range open {
		p.Ordinals = append(p.Ordinals, int32(i))
		p.GivenIDs = append(p.GivenIDs, jobs[i].Request.JobID)
		p.OwnerIDs = append(p.OwnerIDs, jobs[i].Request.OwnerID)
		p.IdempotencyKeys = append(p.IdempotencyKeys, jobs[i].Request.IdempotencyKey)
		p.EventSources = append(p.EventSources, jobs[i].EventSource)
		p.EventIDs = append(p.EventIDs, jobs[i].EventID)
		p.EventOwners = append(p.EventOwners, jobs[i].Whose.ID())
	}
	return p
}

// takeInsertTime reads the database's time from jobs that were just inserted.
func (s *Store) takeInsertTime(ctx context.Context, from time.Duration, accepted []Accepted) {
	for i := range accepted {
		if a := &accepted[i]; a.New() && !a.CreatedAt.IsZero() {
			s.db.TakeTime(ctx, from, a.CreatedAt)
			return
		}
	}
}
