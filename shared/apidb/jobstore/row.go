package jobstore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/rowjson"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
)

// Job is a row: the request, and the latest status that the scheduler has published. A list does not have the payload
// and the parts of the request that few jobs have: jobOf reads them.
type Job struct {
	jobspec.Request // its FairnessKey may be the owner

	JobID             uuid.UUID
	TraceID           uuid.UUID
	CreatedAt         time.Time
	CancelRequestedAt *time.Time
	Status            jobstate.Status
	Version           int64 // 0: no status has arrived
	Attempt           int
	RetryCount        int
	UpdatedAt         time.Time
	Snapshot          jobevent.Status // zero at version 0
	Progress          *jobevent.Progress
	SingletonKey      string // the key by which it has its turn; then it has no OrderingKey
	HasAfter          bool   // it has dependencies
	BlockedBy         []jobevent.Block
	ScheduledBy       *ScheduledBy // nil in a list, and without a schedule
	Held              bool         // further debounced requests may still change it; false in a list
	Parent            *uuid.UUID   // the job whose handler called it; nil in a list, and if none did
	Waits             bool         // its handler has waited for something, or saved steps; false in a list
	RunAgainAs        *uuid.UUID   // the newest job that repeats this one; nil in a list, and if there is none
	Sealed            []string     // members that Open could not open, as the API names them
}

// jobOf converts a row with all that a list lacks, except what other rows have.
func jobOf(row gen.Job) (Job, error) {
	job, err := newJob(gen.JobsListedRow{
		JobID: row.JobID, OwnerID: row.OwnerID, JobType: row.JobType, Queue: row.Queue, Spec: row.Spec,
		RunAt: row.RunAt, Tags: row.Tags, TraceID: row.TraceID,
		CreatedAt: row.CreatedAt, CancelRequestedAt: row.CancelRequestedAt, Status: row.Status, Version: row.Version,
		Attempt: row.Attempt, RetryCount: row.RetryCount, UpdatedAt: row.UpdatedAt, Snapshot: nullable.Value(row.Snapshot),
		Progress: row.Progress, ExpiresAt: row.ExpiresAt, OrderingKey: row.OrderingKey,
		FairnessKey: row.FairnessKey, IdempotencyKey: row.IdempotencyKey, HasAfter: row.AfterIDs != nil,
		BatchID: row.BatchID,
	})
	if err != nil {
		return Job{}, err
	}
	fairnessKey := job.FairnessKey
	if job.Request, err = RequestOf(row); err != nil {
		return Job{}, err
	}
	job.FairnessKey = fairnessKey
	job.ScheduledBy, job.Parent = scheduledBy(row.EventSource, row.EventID), parentOf(row.EventSource)
	job.Waits, job.Held = nullable.Value(row.Waits), nullable.Value(row.Held)
	return job, nil
}

// newListed converts a row without its status.
func newListed(row gen.JobsListedRow) (Job, error) {
	spec, err := jobevent.ReadSpec(row.Spec)
	if err != nil {
		return Job{}, fmt.Errorf("read job %s: %w", row.JobID, err)
	}
	job := Job{
		Request: jobspec.Request{
			Spec: spec, OwnerID: row.OwnerID, JobType: row.JobType, Queue: row.Queue, RunAt: row.RunAt, Tags: row.Tags,
			ExpiresAt: row.ExpiresAt, OrderingKey: nullable.Value(row.OrderingKey),
			FairnessKey:    cmp.Or(nullable.Value(row.FairnessKey), row.OwnerID),
			IdempotencyKey: nullable.Value(row.IdempotencyKey), BatchID: nullable.Value(row.BatchID),
			Element: elementOf(row.FanOutID, row.Element),
		},
		JobID: row.JobID, TraceID: row.TraceID, CreatedAt: row.CreatedAt, CancelRequestedAt: row.CancelRequestedAt,
		Status: jobstate.Status(row.Status), Version: row.Version, Attempt: int(row.Attempt),
		RetryCount: int(row.RetryCount), UpdatedAt: row.UpdatedAt, HasAfter: row.HasAfter,
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

func insertParams(jobs []NewJob, open []int, accepted []Accepted) gen.JobInsertManyParams {
	var p gen.JobInsertManyParams
	for _, i := range open {
		job, req := &jobs[i], &jobs[i].Request
		place := &accepted[i]
		p.JobIDs = append(p.JobIDs, job.JobID)
		p.TraceIDs = append(p.TraceIDs, job.TraceID)
		p.OwnerIDs = append(p.OwnerIDs, req.OwnerID)
		p.JobTypes = append(p.JobTypes, req.JobType)
		p.Queues = append(p.Queues, req.Queue)
		p.Payloads = append(p.Payloads, req.Payload)
		p.Specs = append(p.Specs, req.Spec.Bytes())
		p.RunAts = append(p.RunAts, nullable.Value(cmp.Or(place.RunAt, req.RunAt))) // zero means none, as in all lines below
		p.DelaysMs = append(p.DelaysMs, delayMs(req))
		p.Tags = append(p.Tags, arrayLiteral(req.Tags))
		p.FairnessKeys = append(p.FairnessKeys, req.OwnFairnessKey())
		p.IdempotencyKeys = append(p.IdempotencyKeys, req.IdempotencyKey)
		hash := job.RequestHash
		if req.IdempotencyKey == "" {
			hash = nil
		}
		p.RequestHashes, p.Events = append(p.RequestHashes, hash), append(p.Events, req.Event)
		p.Rests = append(p.Rests, restOf(job, place))
	}
	return p
}

// columns are the values of a row by the names of their columns, without those that are null.
type columns map[string]any

func put[T comparable](c columns, name string, value T) {
	if value != *new(T) {
		c[name] = value
	}
}

func putList[L ~[]T, T any](c columns, name string, list L) {
	if len(list) > 0 {
		c[name] = list
	}
}

// restOf returns those columns that few jobs have, by their names; nil: the job has none of them.
func restOf(job *NewJob, place *Accepted) json.RawMessage {
	req := &job.Request
	if req.IsPlain() && job.EventID == "" {
		return nil
	}
	c := columns{}
	put(c, "expires_at", req.ExpiresAt)
	put(c, "ordering_key", req.LineKey())
	put(c, "order_number", place.OrderNumber)
	put(c, "order_after", place.OrderAfter)
	putList(c, "after_ids", req.After)
	putList(c, "after_conditions", req.Conditions)
	put(c, "runs_anyway", req.RunAnyway)
	putList(c, "inputs", req.Inputs)
	put(c, "callback_url", req.CallbackURL)
	put(c, "run_again_of", req.RunAgainOf)
	put(c, "batch_id", req.BatchID)
	putList(c, "policies", jobspec.MarshalPolicies(req.Policies))
	put(c, "held", job.Held())
	put(c, "for_each", req.ForEach)
	if job.EventID != "" {
		c["event_source"], c["event_id"], c["event_owner"] = job.EventSource, job.EventID, job.Whose.ID()
	}
	if of := req.Element; of != nil {
		c["fan_out_id"], c["element"] = of.FanOut, of.Index
	}
	b, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("write columns of job %s: %v", job.JobID, err)) // texts, numbers and JSON only
	}
	return b
}

func addReplaced(p *gen.HeldReplaceParams, id uuid.UUID, job *NewJob) {
	req := &job.Request
	p.JobIDs, p.JobTypes, p.Queues = append(p.JobIDs, id), append(p.JobTypes, req.JobType), append(p.Queues, req.Queue)
	p.Payloads, p.Specs = append(p.Payloads, job.payloadFor(id)), append(p.Specs, req.Spec.Bytes())
	p.DelaysMs, p.MaxDelaysMs = append(p.DelaysMs, req.Debounce.DelayMs), append(p.MaxDelaysMs, req.Debounce.MaxDelayMs)
	p.Tags = append(p.Tags, arrayLiteral(req.Tags))
	p.ExpiresAts = append(p.ExpiresAts, nullable.Value(req.ExpiresAt))
	p.FairnessKeys = append(p.FairnessKeys, req.OwnFairnessKey())
	p.CallbackURLs = append(p.CallbackURLs, req.CallbackURL)
	p.Policies = append(p.Policies, jobspec.MarshalPolicies(req.Policies))
	p.Events = append(p.Events, req.Event)
}

// RequestOf returns the request of a row.
func RequestOf(row gen.Job) (jobspec.Request, error) {
	spec, err := jobevent.ReadSpec(row.Spec)
	if err != nil {
		return jobspec.Request{}, fmt.Errorf("read job %s: %w", row.JobID, err)
	}
	req := jobspec.Request{
		Spec: spec, JobType: row.JobType, Payload: row.Payload, Queue: row.Queue, RunAt: row.RunAt,
		IdempotencyKey: nullable.Value(row.IdempotencyKey), Tags: row.Tags, OwnerID: row.OwnerID, ExpiresAt: row.ExpiresAt,
		OrderingKey: nullable.Value(row.OrderingKey), FairnessKey: nullable.Value(row.FairnessKey),
		After: row.AfterIDs, RunAnyway: nullable.Value(row.RunsAnyway),
		CallbackURL: nullable.Value(row.CallbackURL), RunAgainOf: nullable.Value(row.RunAgainOf),
		BatchID: nullable.Value(row.BatchID), Event: row.Event,
	}
	if req.Policies, err = policiesOf(row); err != nil {
		return req, err
	}
	if req.Singleton != nil {
		req.OrderingKey = ""
	}
	req.Conditions = conditionsOf(row)
	if row.Inputs != nil {
		if err := json.Unmarshal(row.Inputs, &req.Inputs); err != nil {
			return req, fmt.Errorf("read inputs of job %s: %w", row.JobID, err)
		}
	}
	req.ForEach, req.Element, err = fanOutOf(row)
	return req, err
}

// delayMs returns how long from now a job becomes due.
func delayMs(req *jobspec.Request) int64 {
	if req.Debounce != nil {
		return req.Debounce.DelayMs
	}
	return req.Delay.Milliseconds()
}

var quoteElement = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// arrayLiteral is PostgreSQL's text form of an array.
func arrayLiteral(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = `"` + quoteElement.Replace(text) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
}

// elementOf returns the place of a job that belongs to a fan-out.
func elementOf(fanOut *uuid.UUID, index *int32) *jobspec.Element {
	if fanOut == nil {
		return nil
	}
	return &jobspec.Element{FanOut: *fanOut, Index: int(nullable.Value(index))}
}

// fanOutOf returns the array of a job that is a fan-out, or the place of a job that belongs to a fan-out.
func fanOutOf(row gen.Job) (each *jobspec.ForEach, of *jobspec.Element, err error) {
	of = elementOf(row.FanOutID, row.Element)
	if row.ForEach == nil {
		return nil, of, nil
	}
	if err := json.Unmarshal(row.ForEach, &each); err != nil {
		return nil, nil, fmt.Errorf("read what the fan-out %s is for: %w", row.JobID, err)
	}
	return each, of, nil
}

func conditionsOf(row gen.Job) (conditions []jobstate.Condition) {
	for _, condition := range row.AfterConditions {
		conditions = append(conditions, jobstate.Condition(condition))
	}
	return conditions
}

// policiesOf reads the submit policies of a job. A job that was restored from the scheduler's row has only its turn.
func policiesOf(row gen.Job) (p jobspec.Policies, err error) {
	if key, is := jobspec.SingletonOf(nullable.Value(row.OrderingKey)); is {
		p.Singleton = &jobspec.Singleton{Key: key, Else: jobspec.SingletonQueue}
	}
	if row.Policies == nil {
		return p, nil
	}
	if err := json.Unmarshal(row.Policies, &p); err != nil {
		return p, fmt.Errorf("read the submit policies of job %s: %w", row.JobID, err)
	}
	return p, nil
}
