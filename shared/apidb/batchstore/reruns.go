package batchstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// maxEarlierRuns is how many of the earlier runs of a flow are kept and shown.
const maxEarlierRuns = 20

// EarlierRun is how a run of a flow stood when the next one began.
type EarlierRun struct {
	Run           int32      `json:"run"`
	Status        Status     `json:"status"`
	Counts        Counts     `json:"counts"`
	FinishedAt    *time.Time `json:"finishedAt"`    // nil: some of its jobs went on into the next one
	FollowUpJobID *uuid.UUID `json:"followUpJobId"` // the job that followed it
}

// Rerun is what runs again of a flow, as new jobs.
type Rerun struct {
	apibody.FlowRetry

	NewID func() uuid.UUID
	// Make makes the job with this id of the request of an old one, whose payload may be sealed.
	Make func(id, old uuid.UUID, req jobspec.Request) (jobstore.NewJob, error)
}

// RunFlowAgain begins another run of a flow: the named jobs and all that come after them become new jobs, which refer
// to each other and to the jobs that stay. The old ones keep their attempts, outputs and history, and count no more. It
// returns the new jobs, to be published.
func (s *Store) RunFlowAgain(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, id uuid.UUID, asked Rerun,
) (jobs []jobstore.NewJob, accepted []jobstore.Accepted, err error) {
	var r rerun
	for range jobstore.InsertTries {
		err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
			r = rerun{q: q, asked: asked}
			return r.run(ctx, entry, owner, id)
		})
		if !errors.Is(err, jobstore.ErrCameBetween) {
			break
		}
	}
	if err != nil {
		return nil, nil, none(err)
	}
	s.jobs.CountAccepted(r.jobs, r.accepted)
	return r.jobs, r.accepted, nil
}

// rerun is the transaction that begins another run of a flow.
type rerun struct {
	q        *gen.Queries
	asked    Rerun
	graph    []apibody.FlowJob
	ids      map[uuid.UUID]uuid.UUID // of the new jobs, by those of the old ones
	jobs     []jobstore.NewJob
	accepted []jobstore.Accepted
}

func (r *rerun) run(ctx context.Context, entry *apidb.Audit, owner apidb.Owner, id uuid.UUID) error {
	found, err := r.q.BatchHeld(ctx, gen.BatchHeldParams{BatchID: id, Owner: owner.Filter()})
	if err != nil {
		return err
	}
	row := &found.Batch
	entry.SetSubject(row.OwnerID, "batch/"+id.String())
	if err := mayRetry(row); err != nil {
		return err
	}
	if r.graph, err = readGraph(id, row.Graph); err != nil {
		return err
	}
	replaced, err := r.choose(ctx, id)
	if err != nil {
		return err
	}
	p := gen.FlowRunAgainParams{BatchID: id, Replaced: replaced}
	if p.EarlierRuns, err = r.earlier(ctx, row); err != nil {
		return err
	}
	if err := r.makeJobs(ctx, replaced); err != nil {
		return err
	}
	r.renew()
	if p.Graph, err = json.Marshal(r.graph); err != nil {
		return fmt.Errorf("write graph: %w", err)
	}
	if err := r.q.FlowRunAgain(ctx, p); err != nil {
		return err
	}
	if r.accepted, err = jobstore.InsertFlowRunInTx(ctx, r.q, r.jobs); err != nil {
		return missing(err)
	}
	if entry != nil {
		for _, job := range r.jobs {
			entry.JobIDs = append(entry.JobIDs, job.JobID)
		}
	}
	return r.q.BatchesChanged(ctx)
}

// missing names the reason for which a new job cannot come after an old one.
func missing(err error) error {
	if gone := (*jobstore.MissingError)(nil); errors.As(err, &gone) {
		return apierror.New(apierror.InvalidStateTransition, "a job that others come after is deleted")
	}
	return err
}

// choose returns the jobs to replace, which have all ended, and locks those that a retry could set going meanwhile.
func (r *rerun) choose(ctx context.Context, id uuid.UUID) (replaced []uuid.UUID, err error) {
	names, err := r.asked.Chosen(r.graph)
	if err != nil {
		return nil, err
	}
	r.ids = make(map[uuid.UUID]uuid.UUID, len(names))
	for i := range r.graph {
		if job := &r.graph[i]; names[job.Name] {
			replaced = append(replaced, job.JobID)
			r.ids[job.JobID] = r.asked.NewID()
		}
	}
	rows, err := r.q.FlowJobs(ctx, id)
	if err != nil {
		return nil, err
	}
	locked := replaced[:len(replaced):len(replaced)]
	for _, row := range rows {
		if row.FanOutID != nil && r.isReplaced(row) && jobstate.Status(row.Status) != jobstate.Completed {
			locked = append(locked, row.JobID)
		}
	}
	found, err := r.q.FlowJobsLock(ctx, locked)
	if err != nil {
		return nil, err
	}
	if len(found) < len(locked) {
		return nil, apierror.New(apierror.InvalidStateTransition, "a job of the flow that is to run again is deleted")
	}
	if rows, err = r.q.FlowJobs(ctx, id); err != nil { // as they are under the locks
		return nil, err
	}
	for _, row := range rows {
		if r.isReplaced(row) && !jobstate.Status(row.Status).Terminal() {
			return nil, apierror.New(apierror.InvalidStateTransition,
				"job %s of the flow, which is to run again, has not ended: cancel it, or wait for its end", row.JobID)
		}
	}
	return replaced, nil
}

func (r *rerun) isReplaced(row gen.FlowJobsRow) bool {
	of := row.JobID
	if row.FanOutID != nil {
		of = *row.FanOutID
	}
	_, is := r.ids[of]
	return is
}

// earlier returns the earlier runs of the flow, with the one that ends now.
func (r *rerun) earlier(ctx context.Context, row *gen.Batch) (json.RawMessage, error) {
	batch, err := newBatch(*row)
	if err != nil {
		return nil, err
	}
	if batch.Counts == nil {
		if batch.Counts, err = counts(ctx, r.q, batch.ID); err != nil {
			return nil, err
		}
	}
	runs := slices.Concat(batch.EarlierRuns, []EarlierRun{
		{batch.Run, batch.Status, batch.Counts, batch.FinishedAt, batch.FollowUpID},
	})
	written, err := json.Marshal(runs[max(len(runs)-maxEarlierRuns, 0):])
	if err != nil {
		return nil, fmt.Errorf("write the earlier runs: %w", err)
	}
	return written, nil
}

func (r *rerun) makeJobs(ctx context.Context, replaced []uuid.UUID) error {
	rows, err := r.q.FlowRequests(ctx, replaced)
	if err != nil {
		return err
	}
	now, err := r.q.Now(ctx)
	if err != nil {
		return err
	}
	names := make(map[uuid.UUID]string, len(r.graph))
	for i := range r.graph {
		names[r.graph[i].JobID] = r.graph[i].Name
	}
	for _, row := range rows {
		req, err := jobstore.RequestOf(row.Job)
		if err != nil {
			return err
		}
		old := row.Job.JobID
		job, err := r.asked.Make(r.ids[old], old, req.InNextRun(old, now, r.idNow))
		if err != nil {
			return apibody.AtJob("job "+names[old], err)
		}
		r.jobs = append(r.jobs, job)
	}
	return nil
}

// idNow returns the id that a job has in this run.
func (r *rerun) idNow(id uuid.UUID) uuid.UUID {
	if now, is := r.ids[id]; is {
		return now
	}
	return id
}

// renew puts the new jobs into the graph.
func (r *rerun) renew() {
	for i := range r.graph {
		job := &r.graph[i]
		job.JobID = r.idNow(job.JobID)
		for at := range job.After {
			job.After[at].JobID = r.idNow(job.After[at].JobID)
		}
	}
}
