package jobstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
)

// held is the held job of a debounce key.
type held struct {
	job     Accepted // read from a row; zero: this transaction inserts the job
	at      int      // its ordinal, if this transaction inserts it
	by      int      // the ordinal of the last request that has changed it; -1: no request of this transaction has
	lineKey string
}

// debounce has the statements for debounced jobs. They are not called by name where jobs are inserted, so that a
// function which inserts no debounced jobs needs no right to change the content of jobs.
type debounce struct {
	lookUp  func(*dependents, context.Context, []int) ([]int, error)
	read    func(*dependents, context.Context, map[keyed][]int, *decision) error
	replace func(*dependents, context.Context) error
}

func newDebounce() *debounce {
	return &debounce{(*dependents).lookUpMerged, (*dependents).readHeld, (*dependents).replaceHeld}
}

func keyedDebounce(req *jobspec.Request) keyed {
	if req.Debounce == nil {
		return keyed{kind: debounceKeys}
	}
	return keyed{debounceKeys, req.OwnerID, req.Debounce.Key}
}

func (t *dependents) readHeld(ctx context.Context, keys map[keyed][]int, d *decision) error {
	some := keysOfKind(keys, debounceKeys)
	if len(some) == 0 {
		return nil
	}
	var p gen.HeldJobsParams
	for place, key := range some {
		p.Places = append(p.Places, int32(place))
		p.OwnerIDs, p.Keys = append(p.OwnerIDs, key.owner), append(p.Keys, key.key)
	}
	rows, err := t.q.HeldJobs(ctx, p)
	for _, row := range rows {
		d.held[some[row.Place]] = &held{
			job: Accepted{JobID: row.JobID, TraceID: row.TraceID, CreatedAt: row.CreatedAt},
			by:  -1, lineKey: nullable.Value(row.OrderingKey),
		}
	}
	return err
}

// merge changes a held job by a request. The job keeps its place in an order, so the request must have the same
// ordering key.
func (t *dependents) merge(i int, h *held) {
	a := &t.accepted[i]
	if t.jobs[i].Request.LineKey() != h.lineKey {
		a.Late = otherLine
		return
	}
	h.by = i
	*a = h.job
	if h.job.JobID == uuid.Nil {
		a.JobID, a.TraceID = t.jobs[h.at].JobID, t.jobs[h.at].TraceID
	}
	a.DecidedBy, a.Found = ByDebounce, jobstate.Scheduled
}

var otherLine error = apierror.Invalid("job request", "debounce",
	"must have the orderingKey or singleton of the job that is held")

// merged returns the jobs of the transaction. A job that later requests have changed has the content of the last of
// them.
func (t *dependents) merged() []NewJob {
	jobs := t.jobs
	for _, h := range t.held {
		if h.job.JobID != uuid.Nil || h.by == h.at {
			continue
		}
		if &jobs[0] == &t.jobs[0] {
			jobs = slices.Clone(jobs)
		}
		job, last := &jobs[h.at], &t.jobs[h.by]
		key := job.Request.IdempotencyKey
		job.Request = last.Request
		job.Request.IdempotencyKey, job.Request.Payload = key, last.payloadFor(job.JobID)
	}
	return jobs
}

// replaceHeld gives each held job the content of its last request, and stores the identities of all its requests.
func (t *dependents) replaceHeld(ctx context.Context) error {
	var p gen.HeldReplaceParams
	for _, h := range t.held {
		if h.job.JobID != uuid.Nil && h.by >= 0 {
			addReplaced(&p, h.job.JobID, &t.jobs[h.by])
		}
	}
	if len(p.JobIDs) > 0 {
		if _, err := t.q.HeldReplace(ctx, p); err != nil {
			return err
		}
	}
	var kept gen.MergedKeepParams
	for i := range t.jobs {
		job, a := &t.jobs[i], &t.accepted[i]
		if !a.Merged() {
			continue
		}
		for _, identity := range identitiesOf(job) {
			kept.OwnerIDs, kept.Identities = append(kept.OwnerIDs, identity.owner), append(kept.Identities, identity.hash)
			kept.RequestHashes, kept.JobIDs = append(kept.RequestHashes, identity.request), append(kept.JobIDs, a.JobID)
		}
	}
	if len(kept.JobIDs) == 0 {
		return nil
	}
	return t.q.MergedKeep(ctx, kept)
}

// identity has the hashes by which a repeated request is recognised.
type identity struct {
	owner         string
	hash, request []byte // request is the hash of the request's content; nil for an event
}

func identitiesOf(job *NewJob) (all []identity) {
	hash := func(parts ...string) []byte {
		text, err := json.Marshal(parts)
		if err != nil {
			panic(fmt.Sprintf("write the identity of a request: %v", err)) // texts only
		}
		sum := sha256.Sum256(text)
		return sum[:]
	}
	if job.EventID != "" {
		all = append(all, identity{job.Whose.ID(), hash("event", job.EventSource, job.EventID), nil})
	}
	if key := job.Request.IdempotencyKey; key != "" {
		all = append(all, identity{job.Request.OwnerID, hash("key", key), job.RequestHash})
	}
	return all
}

// lookUpMerged fills in the results of repeated requests that have changed a job before, and returns the ordinals of
// the others. A request without a debounce key has changed no job.
func (t *dependents) lookUpMerged(ctx context.Context, open []int) ([]int, error) {
	var p gen.MergedFindParams
	var asked []identity
	for _, i := range open {
		if !t.jobs[i].Held() {
			continue
		}
		for _, identity := range identitiesOf(&t.jobs[i]) {
			p.Ordinals, asked = append(p.Ordinals, int32(i)), append(asked, identity)
			p.OwnerIDs, p.Identities = append(p.OwnerIDs, identity.owner), append(p.Identities, identity.hash)
		}
	}
	if len(asked) == 0 {
		return open, nil
	}
	rows, err := t.q.MergedFind(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		job := &t.jobs[row.Ordinal]
		known := Accepted{
			JobID: row.JobID, TraceID: row.TraceID, RunAt: row.RunAt, CreatedAt: row.CreatedAt, Replayed: true,
			Conflict: row.RequestHash != nil && !bytes.Equal(row.RequestHash, job.RequestHash),
		}
		if !job.Whose.Sees(row.OwnerID) {
			known = Accepted{Replayed: true, Conflict: true}
		}
		t.accepted[row.Ordinal] = known
	}
	open = slices.DeleteFunc(open, func(i int) bool { return t.accepted[i].Replayed })
	return open, t.awaitReplicas(ctx, len(rows))
}

// releaseMost is how many due jobs are released at once, and also how many jobs that got a command.
const releaseMost = 100

// Released has what must be published about jobs that were held.
type Released struct {
	Jobs     []jobevent.Created
	Commands []commandstore.Command // the commands that these jobs got while they were held

	More bool          // further jobs are ready
	Next time.Duration // until the next held job is due; long if none is held
}

// Release ends the hold of jobs that are due, or that have got a command. If they are not published then, reconcile
// publishes them.
func (s *Store) Release(ctx context.Context) (released Released, err error) {
	notify, done := s.db.BeginChange()
	defer done()
	err = s.db.Tx(ctx, func(q *gen.Queries) error {
		rows, err := q.HeldRelease(ctx, gen.HeldReleaseParams{
			MaxJobs: releaseMost, FullPage: releaseMost, MaxLast: releaseMost / 4,
		})
		if err != nil {
			return err
		}
		if released.Jobs, err = statusstore.CreatedOf(rows); err != nil || len(rows) == 0 {
			return err
		}
		ids := make([]uuid.UUID, len(rows))
		for i, row := range rows {
			ids[i] = row.JobID
		}
		if released.Commands, err = commandsOf(ctx, q, ids); err != nil || !notify {
			return err
		}
		return apidb.NotifyChange(ctx, q, apidb.ChangeStatus, ids)
	})
	if err != nil {
		return Released{}, apidb.Classify("release held jobs", err)
	}
	released.More = len(released.Jobs) >= releaseMost
	seconds, err := s.q.HeldNext(ctx)
	released.Next = time.Duration(max(seconds, 0) * float64(time.Second))
	return released, apidb.Classify("look for the next held job", err)
}

func commandsOf(ctx context.Context, q *gen.Queries, ids []uuid.UUID) ([]commandstore.Command, error) {
	rows, err := q.HeldCommands(ctx, ids)
	commands := make([]commandstore.Command, len(rows))
	for i, row := range rows {
		commands[i] = commandstore.Command{
			JobID: row.JobID, TraceID: row.TraceID, Number: int(row.Number), Command: row.Command, By: row.ByWhom,
			RunAt: row.RunAt, Version: row.Version,
		}
		if row.Change == nil {
			continue
		}
		if err := json.Unmarshal(row.Change, &commands[i].Change); err != nil {
			return nil, fmt.Errorf("read the change of job %s: %w", row.JobID, err)
		}
	}
	return commands, err
}
