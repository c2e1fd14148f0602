package jobstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	jsonv2 "github.com/go-json-experiment/json" // three times as fast as encoding/json
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/nullable"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/rowjson"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Job is a row: the request, and the latest status that the scheduler has published.
type Job struct {
	JobID             uuid.UUID
	TraceID           uuid.UUID
	OwnerID           string
	JobType           string
	Queue             string
	Payload           json.RawMessage // nil in a list
	Priority          int
	MaxRetryCount     int
	RunAt             *time.Time
	Tags              []string
	CreatedAt         time.Time
	CancelRequestedAt *time.Time
	Status            jobstate.Status
	Version           int64 // 0: no status has arrived
	Attempt           int
	RetryCount        int
	UpdatedAt         time.Time
	Snapshot          jobevent.Status // zero at version 0
	Progress          *jobevent.Progress
	ExpiresAt         *time.Time
	OrderingKey       string
	SingletonKey      string // the key by which it has its turn; then it has no OrderingKey
	FairnessKey       string // the key in its request, or else its owner; empty: it has neither
	KeepBuild         bool   // false in a list
	IdempotencyKey    string
	HasAfter          bool                 // it has dependencies
	After             []uuid.UUID          // nil in a list; see Changed
	RunAnyway         bool                 // false in a list
	Conditions        []jobstate.Condition // how each of After has to end; nil: in a list, and if none names one
	BlockedBy         []jobevent.Block
	ScheduledBy       *ScheduledBy     // nil in a list, and without a schedule
	CallbackURL       string           // empty in a list, and if its end is not delivered
	BatchID           *uuid.UUID       // nil: it is in no batch
	RunAgainOf        *uuid.UUID       // nil in a list, and if it does not repeat another job
	Policies          jobspec.Policies // none in a list
	Held              bool             // further debounced requests may still change it; false in a list
	ForEach           *jobspec.ForEach // nil in a list, and if it is no fan-out
	Element           *jobspec.Element // nil in a list, and if it belongs to no fan-out
	RunAgainAs        *uuid.UUID       // the newest job that repeats this one; nil in a list, and if there is none
	Sealed            []string         // members that Open could not open, as the API names them
}

// Job returns one of the owner's jobs, or ErrNoJob.
func (s *Store) Job(ctx context.Context, owner apidb.Owner, id uuid.UUID) (Job, error) {
	found, err := s.q.JobByID(ctx, gen.JobByIDParams{JobID: id, Owner: owner.Filter()})
	if err != nil {
		return Job{}, apidb.Classify("get job", err)
	}
	row := found.Job
	job, err := newJob(gen.JobsListedRow{
		JobID: row.JobID, OwnerID: row.OwnerID, JobType: row.JobType, Queue: row.Queue, Priority: row.Priority,
		MaxRetryCount: row.MaxRetryCount, RunAt: row.RunAt, Tags: row.Tags, TraceID: row.TraceID,
		CreatedAt: row.CreatedAt, CancelRequestedAt: row.CancelRequestedAt, Status: row.Status, Version: row.Version,
		Attempt: row.Attempt, RetryCount: row.RetryCount, UpdatedAt: row.UpdatedAt, Snapshot: nullable.Value(row.Snapshot),
		Progress: row.Progress, ExpiresAt: row.ExpiresAt, OrderingKey: row.OrderingKey,
		FairnessKey: row.FairnessKey, IdempotencyKey: row.IdempotencyKey, HasAfter: row.AfterIDs != nil,
		BatchID: row.BatchID,
	})
	if err != nil {
		return Job{}, err
	}
	job.Payload, job.After, job.RunAnyway = row.Payload, row.AfterIDs, nullable.Value(row.RunsAnyway)
	job.KeepBuild = nullable.Value(row.KeepBuild)
	job.ScheduledBy, job.CallbackURL = scheduledBy(row.EventSource, row.EventID), nullable.Value(row.CallbackURL)
	job.RunAgainOf, job.Conditions = row.RunAgainOf, conditionsOf(row)
	job.Held = nullable.Value(row.Held)
	if job.Policies, err = policiesOf(row); err != nil {
		return Job{}, err
	}
	if job.ForEach, job.Element, err = fanOutOf(row); err != nil {
		return Job{}, err
	}
	if found.RunAgainAs != uuid.Nil {
		job.RunAgainAs = &found.RunAgainAs
	}
	page := []Job{job}
	err = s.findBlocks(ctx, page, jobspec.MaxAfter)
	return page[0], apidb.Classify("find what a job waits for", err)
}

// Filter selects jobs. An empty field excludes none.
type Filter struct {
	Status         []jobstate.Status // one of these
	JobType        string
	Queue          string
	Tag            string
	OrderingKey    string
	ErrorCode      string     // of the last failure
	NoErrorCode    bool       // never failed, or failed without a code
	TraceID        *uuid.UUID // nil: any
	IdempotencyKey string
	After          *uuid.UUID // depend on this job; nil: any
	BatchID        *uuid.UUID // nil: any
	Search         string     // see decideSearch
	OwnerID        string
	Since          *time.Time // createdAt from here on
	Until          *time.Time // createdAt before this
	Before         uuid.UUID  // only jobs after this one in the list, that is older jobs
	Skip           int        // how many of the newest remaining jobs to skip
	Limit          int

	search SearchBy
}

// ListJobs returns the owner's newest matching jobs, without payloads and history. next is the job after which the
// list continues; uuid.Nil: it ends here. A page may be shorter than the limit if its jobs are large, or if many jobs
// had to be looked at.
func (s *Store) ListJobs(ctx context.Context, owner apidb.Owner, f Filter) (jobs []Job, next uuid.UUID, err error) {
	owner, some := f.within(owner)
	if !some {
		return nil, uuid.Nil, nil
	}
	rows, next, err := s.list(ctx, owner, f)
	if err != nil {
		return nil, next, apidb.Classify("list jobs", err)
	}
	for i, row := range rows {
		if i == f.Limit || row.Version > 0 && row.Snapshot == "" {
			next = rows[i-1].JobID
			break
		}
		job, err := newListed(row)
		if err == nil && row.Snapshot != "" {
			err = readSnapshot(row.JobID, row.Snapshot, &listed{Status: &job.Snapshot})
		}
		if err != nil {
			return nil, next, err
		}
		jobs = append(jobs, job)
	}
	if err := s.findBlocks(ctx, jobs, maxListedAfter); err != nil {
		return nil, next, apidb.Classify("find what jobs wait for", err)
	}
	return jobs, next, nil
}

// listed is a job's status without its history.
type listed struct {
	*jobevent.Status
	History skipped `json:"history"`
}

// skipped ignores a JSON value.
type skipped struct{}

func (skipped) UnmarshalJSONFrom(from *jsontext.Decoder) error { return from.SkipValue() }

func readSnapshot(id uuid.UUID, snapshot string, into any) error {
	if err := jsonv2.Unmarshal([]byte(snapshot), into, rowjson.AnyNames); err != nil {
		return fmt.Errorf("read snapshot of job %s: %w", id, err)
	}
	return nil
}

// Ended returns those of the jobs that have ended or are deleted. The caller has checked their owner.
func (s *Store) Ended(ctx context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
	ended, err := s.q.JobsEnded(ctx, ids)
	return ended, apidb.Classify("find ended jobs", err)
}

func newJob(row gen.JobsListedRow) (Job, error) {
	job, err := newListed(row)
	if err == nil && row.Snapshot != "" {
		err = readSnapshot(row.JobID, row.Snapshot, &job.Snapshot)
	}
	return job, err
}

// newListed converts a row without its status.
func newListed(row gen.JobsListedRow) (Job, error) {
	job := Job{
		JobID: row.JobID, TraceID: row.TraceID, OwnerID: row.OwnerID, JobType: row.JobType, Queue: row.Queue,
		Priority: int(row.Priority), MaxRetryCount: int(row.MaxRetryCount), RunAt: row.RunAt, Tags: row.Tags,
		CreatedAt: row.CreatedAt, CancelRequestedAt: row.CancelRequestedAt, Status: jobstate.Status(row.Status),
		Version: row.Version, Attempt: int(row.Attempt), RetryCount: int(row.RetryCount), UpdatedAt: row.UpdatedAt,
		ExpiresAt: row.ExpiresAt, OrderingKey: nullable.Value(row.OrderingKey),
		FairnessKey:    cmp.Or(nullable.Value(row.FairnessKey), row.OwnerID),
		IdempotencyKey: nullable.Value(row.IdempotencyKey), HasAfter: row.HasAfter, BatchID: row.BatchID,
	}
	if key, is := jobspec.SingletonOf(job.OrderingKey); is {
		job.OrderingKey, job.SingletonKey = "", key
	}
	if row.Progress != nil {
		var progress rowjson.Progress
		if err := json.Unmarshal(row.Progress, &progress); err != nil {
			return Job{}, fmt.Errorf("read progress of job %s: %w", row.JobID, err)
		}
		if progress.Attempt == job.Attempt { // otherwise it belongs to an attempt of which no status has arrived
			job.Progress = &progress.Progress
		}
	}
	return job, nil
}

// EndedJob reads a job as JobsApplyStatus stored it in a delivery.
func EndedJob(row json.RawMessage, snapshot string) (Job, error) {
	var list gen.JobsListedRow
	if err := json.Unmarshal(row, &list); err != nil {
		return Job{}, fmt.Errorf("read a job as it ended: %w", err)
	}
	list.Snapshot = snapshot
	return newJob(list)
}

// TagsOf returns the tags of those jobs that have tags.
func (s *Store) TagsOf(ctx context.Context, jobs []uuid.UUID) (map[uuid.UUID][]string, error) {
	rows, err := s.q.TagsOf(ctx, jobs)
	if err != nil {
		return nil, apidb.Classify("read tags", err)
	}
	tags := make(map[uuid.UUID][]string, len(rows))
	for _, row := range rows {
		tags[row.JobID] = row.Tags
	}
	return tags, nil
}
