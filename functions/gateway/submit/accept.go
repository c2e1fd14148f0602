package submit

import (
	"context"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/coalesce"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Accept commits jobs, and hands the events of new ones to the publish buffer.
func (a *API) Accept(c *gin.Context, entry *apidb.Audit, jobs []jobstore.NewJob) ([]jobstore.Accepted, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if err := a.Limits.AllowJobs(c, len(jobs)); err != nil {
		return nil, err
	}
	for i := range jobs {
		jobs[i].Audit = entry
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	var accepted []jobstore.Accepted
	var err error
	if coalescer := a.coalescerFor(jobs); coalescer != nil {
		accepted = make([]jobstore.Accepted, 1)
		accepted[0], err = coalescer.Add(ctx, jobs[0])
	} else {
		accepted, err = a.Store.InsertJobs(edge.WithShare(ctx, c), jobs)
	}
	if err != nil {
		return nil, err
	}
	return accepted, a.Publish(ctx, jobs, accepted)
}

// coalescerFor returns the coalescer for a single job; nil: it is inserted alone. A job with an idempotency key may
// have to wait for another transaction with that key, and would delay the jobs in the same statement. Jobs with the
// same ordering key or key of a policy wait for each other anyway: in one statement they wait once.
func (a *API) coalescerFor(jobs []jobstore.NewJob) *coalesce.Coalescer {
	if len(jobs) > 1 {
		return nil
	}
	switch req := &jobs[0].Request; {
	case (req.OrderingKey != "" || req.Policies != jobspec.Policies{}) && len(req.After) == 0:
		return a.Ordered
	case req.IdempotencyKey == "" && req.IsPlain():
		return a.Singles
	}
	return nil
}

// Publish hands the events of new jobs to the publish buffer, after their commit.
func (a *API) Publish(ctx context.Context, jobs []jobstore.NewJob, accepted []jobstore.Accepted) error {
	events := make([]jobevent.Item, 0, len(jobs))
	watched := a.Hub.IsWatched()
	for i := range accepted {
		if !accepted[i].New() && !accepted[i].Merged() {
			continue
		}
		if watched {
			a.Hub.Announce(apidb.ChangeStatus, accepted[i].JobID)
		}
		if jobs[i].Held() {
			a.Held.Wake()
			continue
		}
		e, err := apievent.Created(accepted[i].Created(jobs[i]))
		if err != nil {
			return err
		}
		if jobs[i].TraceParent != "" {
			telemetry.SetAsked(ctx, &e, jobs[i].TraceParent)
		} else {
			telemetry.SetHere(ctx, &e, jobevent.JobSpanID(accepted[i].JobID))
		}
		events = append(events, e)
	}
	a.Outgoing.Add(slices.Clip(events))
	return nil
}
