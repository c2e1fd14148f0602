package batchstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/rowjson"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// ElementRules are what holds for the jobs of elements.
type ElementRules struct {
	schedulestore.Rules

	Check func(*jobspec.Request) error // of a payload by the schemas of workers
}

// FanOut is a fan-out that has not ended.
type FanOut struct {
	ID       uuid.UUID
	Expanded bool // the jobs of its elements exist
	Due      bool // these jobs are to be made, or all of them have ended
}

// FanOuts returns the next fan-outs that have not ended, at most that many.
func (s *Store) FanOuts(ctx context.Context, after uuid.UUID, most int) ([]FanOut, error) {
	rows, err := s.q.FanOutsLive(ctx, gen.FanOutsLiveParams{AfterID: after, MaxJobs: int32(most)})
	found := make([]FanOut, len(rows))
	for i, row := range rows {
		found[i] = FanOut{ID: row.JobID, Expanded: row.Expanded, Due: row.Due}
	}
	return found, apidb.Classify("look for fan-outs", err)
}

// RefusedFanOut is why a fan-out gets no jobs for its elements, and fails.
type RefusedFanOut struct {
	Attempt int // of the fan-out
	Why     string
}

func (e *RefusedFanOut) Error() string { return e.Why }

// Expand inserts the jobs of the elements of a fan-out in one transaction, and returns what is to be published: all of
// them or, if another process does it or the fan-out has ended, none. The error may be a *RefusedFanOut.
func (s *Store) Expand(ctx context.Context, rules ElementRules, id uuid.UUID) ([]jobevent.Created, error) {
	var x expansion
	for range jobstore.InsertTries {
		x = expansion{rules: rules, db: s.db}
		err := s.db.Tx(ctx, func(q *gen.Queries) error {
			x.q = q
			return x.run(ctx, id)
		})
		switch refused := (*RefusedFanOut)(nil); {
		case errors.Is(err, jobstore.ErrCameBetween):
			continue
		case errors.Is(err, errFanOutEnded):
			return nil, nil
		case errors.As(err, &refused):
			return nil, refused
		case err != nil:
			return nil, apidb.Classify("expand fan-out "+id.String(), err)
		}
		break
	}
	s.jobs.CountAccepted(x.jobs, x.accepted)
	created := make([]jobevent.Created, len(x.accepted))
	for i := range x.accepted {
		created[i] = x.accepted[i].Created(x.jobs[i])
	}
	return created, nil
}

// expansion is the transaction that inserts the jobs of a fan-out.
type expansion struct {
	q        *gen.Queries
	db       *apidb.Store
	rules    ElementRules
	fanOut   gen.FanOutReadRow
	jobs     []jobstore.NewJob
	accepted []jobstore.Accepted
}

func (x *expansion) run(ctx context.Context, id uuid.UUID) error {
	taken, err := x.q.FanOutTry(ctx, jobstore.BatchLock(id))
	if err != nil || !taken {
		return err
	}
	if x.fanOut, err = x.q.FanOutRead(ctx, id); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	}
	job := &x.fanOut.Job
	if job.Elements != nil || job.CancelRequestedAt != nil {
		return nil
	}
	// The batch does not end meanwhile, as it does not while a submit adds jobs to it.
	batch := nullable.Value(job.BatchID)
	if err := x.q.BatchesShare(ctx, []int64{jobstore.BatchLock(batch)}); err != nil {
		return err
	}
	unfinished, err := x.q.BatchUnfinished(ctx, batch)
	if err != nil {
		return err
	}
	if unfinished == 0 && job.BatchID != nil { // the fan-out was retried on its own, and what has ended takes no jobs
		return &RefusedFanOut{attemptOf(*job), "its flow has ended: retry the flow"}
	}
	req, err := jobstore.RequestOf(*job)
	if err != nil {
		return err
	}
	output, ready, err := x.parents(ctx, &req)
	if err != nil || !ready {
		return err
	}
	payload, err := x.rules.Sealer.Open(sealing.OfJob(id, sealing.Payload), req.Payload)
	if err != nil {
		return fmt.Errorf("open payload: %w", err)
	}
	if err := x.makeJobs(req, payload, output); err != nil {
		return x.refusal(err)
	}
	for len(x.accepted) < len(x.jobs) {
		some, err := jobstore.InsertElementsInTx(ctx, x.q, nextInsert(x.jobs[len(x.accepted):]))
		if err != nil {
			return x.refusal(err)
		}
		x.accepted = append(x.accepted, some...)
	}
	n, err := x.q.FanOutExpanded(ctx, gen.FanOutExpandedParams{JobID: id, Elements: int32(len(x.jobs))})
	if err == nil && n == 0 {
		err = errFanOutEnded
	}
	return err
}

// maxInsertBytes is the most bytes of payloads in one statement. A statement takes several times as much memory.
const maxInsertBytes = 2 << 20

// nextInsert returns the first of the jobs whose payloads fit into a statement, at least one.
func nextInsert(jobs []jobstore.NewJob) []jobstore.NewJob {
	size := 0
	for i := range jobs {
		if size += len(jobs[i].Request.Payload); size > maxInsertBytes && i > 0 {
			return jobs[:i]
		}
	}
	return jobs
}

// attemptOf returns the attempt of a fan-out, of which no status may have arrived yet.
func attemptOf(job gen.Job) int { return max(int(job.Attempt), 1) }

// errFanOutEnded undoes the inserts.
var errFanOutEnded = errors.New("the fan-out has ended meanwhile")

// refusal returns a *RefusedFanOut for an error that a further try meets, too.
func (x *expansion) refusal(err error) error {
	var why string
	switch wrong, output := (*apierror.Error)(nil), (*jobspec.OutputError)(nil); {
	case errors.As(err, &wrong): // also in a *jobstore.LateError
		why = wrong.Message
	case errors.As(err, &output):
		why = output.Message
	default:
		return err
	}
	if element := (*elementError)(nil); errors.As(err, &element) {
		why = fmt.Sprintf("the job for element %d: %s", element.index, why)
	}
	return &RefusedFanOut{attemptOf(x.fanOut.Job), why}
}

// elementError is an error because of an element.
type elementError struct {
	index int
	err   error
}

func (e *elementError) Error() string { return e.err.Error() }

func (e *elementError) Unwrap() error { return e.err }

// parents returns the output with the array, and whether all jobs that the fan-out comes after have ended as they had
// to. If one has not, the scheduler cancels the fan-out. One that was retried it does not cancel: like any job that is
// retried on its own, that fan-out goes on whatever the others have become.
func (x *expansion) parents(ctx context.Context, req *jobspec.Request) (output []byte, ready bool, err error) {
	rows, err := x.q.FanOutParents(ctx, req.After)
	if err != nil {
		return nil, false, err
	}
	ends := make(map[uuid.UUID]jobstate.Status, len(rows))
	for _, row := range rows {
		ends[row.JobID] = jobstate.Status(row.Status)
		if row.JobID != req.ForEach.JobID || ends[row.JobID] != jobstate.Completed {
			continue
		}
		if output, err = openOutput(x.rules.Sealer, row.JobID, row.Snapshot); err != nil {
			return nil, false, err // its key may not have reached this process yet: tried again
		}
	}
	retried := attemptOf(x.fanOut.Job) > 1
	for i, id := range req.After {
		end, there := ends[id]
		if there && (!end.Terminal() || !retried && !req.Condition(i).Met(end)) {
			return nil, false, nil
		}
	}
	return output, true, nil
}

// openOutput returns the output of a completed job; nil: it has none.
func openOutput(sealer *sealing.Sealer, id uuid.UUID, snapshot *string) ([]byte, error) {
	if snapshot == nil {
		return nil, nil
	}
	var known struct {
		Attempt int             `json:"attempt"`
		Output  json.RawMessage `json:"output"`
	}
	if err := jsonv2.Unmarshal([]byte(*snapshot), &known, rowjson.AnyNames); err != nil {
		return nil, fmt.Errorf("read snapshot of job %s: %w", id, err)
	}
	output, err := sealer.Open(sealing.OfAttempt(id, known.Attempt, sealing.Output), known.Output)
	if err != nil {
		return nil, fmt.Errorf("open output of job %s: %w", id, err)
	}
	return output, nil
}

// makeJobs makes the jobs of the elements.
func (x *expansion) makeJobs(req jobspec.Request, payload, output []byte) error {
	fanOut := &x.fanOut.Job
	elements, err := req.ForEach.Elements(output)
	if err != nil {
		return err
	}
	x.jobs = make([]jobstore.NewJob, len(elements))
	size := 0
	for i, element := range elements {
		of := req.OfElement(jobspec.Element{FanOut: fanOut.JobID, Index: i})
		if of.Payload, err = jobspec.FillInItem(payload, element, i); err != nil {
			return err
		}
		if size += len(of.Payload); size > jobspec.MaxElementsBytes {
			return &jobspec.OutputError{Code: apierror.InvalidFanOut, Message: fmt.Sprintf(
				"the payloads of the jobs for its elements have more than %d bytes together", jobspec.MaxElementsBytes)}
		}
		if err := x.check(&of); err != nil {
			return &elementError{i, err}
		}
		id := jobevent.JobID(x.db.NewIDAt(x.fanOut.At), jobevent.Sampled(fanOut.JobID))
		of.Payload = x.rules.Sealer.Seal(sealing.OfJob(id, sealing.Payload), of.Payload)
		x.jobs[i] = jobstore.NewJob{
			JobID: id, TraceID: fanOut.TraceID, Request: of, Whose: apidb.OwnerOf(fanOut.OwnerID), InFlow: true,
		}
	}
	x.lineUp()
	return nil
}

// lineUp gives the jobs their places in the order of their key: right before the fan-out, so that they wait for no job
// that may wait for the fan-out. The sequence order_numbers leaves room for them.
func (x *expansion) lineUp() {
	last := nullable.Value(x.fanOut.Job.OrderNumber)
	if last == 0 {
		return
	}
	after := &x.fanOut.Job.JobID // when it has arrived, so have all jobs before it
	for i := range x.jobs {
		x.jobs[i].Place = jobstore.Place{OrderNumber: last - int64(len(x.jobs)-i), OrderAfter: after}
		after = &x.jobs[i].JobID
	}
}

// check refuses a payload that could not be checked before it had its element. One that refers to outputs is checked
// by its worker.
func (x *expansion) check(of *jobspec.Request) error {
	if len(of.Inputs) > 0 {
		return nil
	}
	of.Inputs = nil
	if err := jobspec.CheckPayload(*of, x.rules.Rules.Rules); err != nil {
		return err
	}
	return x.rules.Check(of)
}

// elementsPage is how many outputs of elements are read at once, unless they are large.
const elementsPage = 500

// FanOutEnd is how a fan-out is to end.
type FanOutEnd struct {
	Attempt   int
	Cancelled bool // jobs of its elements were cancelled, and none has failed
	Failed    string
	Output    json.RawMessage // the outputs of all in their order; not sealed
}

// End returns how a fan-out ends whose jobs have all ended; nil: they have not.
func (s *Store) End(ctx context.Context, sealer *sealing.Sealer, id uuid.UUID) (*FanOutEnd, error) {
	job, err := s.q.FanOutRead(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, apidb.Classify("read fan-out", err)
	}
	ends, err := s.q.FanOutEnds(ctx, id)
	n, attempt := int(nullable.Value(job.Job.Elements)), attemptOf(job.Job)
	switch {
	case err != nil:
		return nil, apidb.Classify("count the jobs of a fan-out", err)
	case ends.Live > 0 || job.Job.Elements == nil:
		return nil, nil
	case ends.Failed > 0:
		const why = "of %d jobs %d failed and %d were cancelled; the first is that of element %d"
		return &FanOutEnd{Attempt: attempt, Failed: fmt.Sprintf(why, n, ends.Failed, ends.Cancelled, ends.First)}, nil
	case ends.Cancelled > 0:
		return &FanOutEnd{Attempt: attempt, Cancelled: true}, nil
	}
	output, err := s.outputs(ctx, sealer, id, n)
	return &FanOutEnd{Attempt: attempt, Output: output}, err
}

// outputs returns the outputs of n elements as an array, with null for a job that has none or is deleted. Of outputs
// that are too large together it returns only that.
func (s *Store) outputs(ctx context.Context, sealer *sealing.Sealer, id uuid.UUID, n int) (json.RawMessage, error) {
	all, next := []byte{'['}, 0
	upTo := func(i int) { // appends the null of those before i
		for ; next < i; next++ {
			all = append(all, "null,"...)
		}
	}
	for more := true; more; {
		rows, err := s.q.FanOutOutputs(ctx, gen.FanOutOutputsParams{
			FanOutID: id, AfterElement: int32(next - 1), MaxJobs: elementsPage, MaxBytes: jobevent.MaxParentBytes,
		})
		if err != nil {
			return nil, apidb.Classify("read the outputs of a fan-out", err)
		}
		for _, row := range rows {
			output, err := openOutput(sealer, row.JobID, row.Snapshot)
			if err != nil {
				return nil, err
			}
			if upTo(int(row.Element)); output == nil {
				output = []byte("null")
			}
			all, next = append(append(all, output...), ','), next+1
			if len(all) > jobevent.MaxParentBytes {
				return jobspec.TooLarge(int64(len(all))), nil
			}
		}
		more = len(rows) > 0
	}
	upTo(n)
	return append(bytes.TrimSuffix(all, []byte{','}), ']'), nil
}

// Orphans has the jobs of cancelled fan-outs cancelled that were inserted while the cancel was under way.
func (s *Store) Orphans(ctx context.Context) error {
	const most = 20
	rows, err := s.q.FanOutOrphans(ctx, most)
	for _, row := range rows {
		if err = s.cancelOrphans(ctx, row); err != nil {
			break
		}
	}
	return apidb.Classify("cancel the jobs of cancelled fan-outs", err)
}

func (s *Store) cancelOrphans(ctx context.Context, of gen.FanOutOrphansRow) error {
	ids, err := s.q.FanOutOrphansOf(ctx, gen.FanOutOrphansOfParams{FanOutID: of.JobID, MaxJobs: jobspec.MaxBatchJobs})
	if err != nil || len(ids) == 0 {
		return err
	}
	asked := s.newOperation(apidb.OwnerOf(of.OwnerID), of.BatchID, FanOuts, jobevent.CommandCancel)
	asked.Request.Filter, asked.Request.JobIDs = nil, ids
	return s.db.Tx(ctx, func(q *gen.Queries) error {
		batch, err := q.BatchHeld(ctx, gen.BatchHeldParams{BatchID: of.BatchID})
		if err != nil || batch.Batch.FinishedAt != nil {
			return err
		}
		if live, err := q.BatchLive(ctx, gen.BatchLiveParams{
			BatchID: of.BatchID, OperationID: batch.Batch.OperationID,
		}); err != nil || live.Delayed { // another process has done it
			return err
		}
		if err := q.BatchDelay(ctx, gen.BatchDelayParams{BatchID: of.BatchID, OperationID: asked.ID}); err != nil {
			return err
		}
		return s.operations.InsertInTx(ctx, q, asked)
	})
}

// FanOuts is the author of commands about fan-outs.
const FanOuts = "fan-out"
