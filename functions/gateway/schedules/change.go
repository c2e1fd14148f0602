package schedules

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// Pause is POST /api/schedules/{name}/pause.
func (a *API) Pause(c *gin.Context) error {
	return a.change(c, a.Store.Pause)
}

// Resume is POST /api/schedules/{name}/resume.
func (a *API) Resume(c *gin.Context) error {
	return a.change(c, a.Store.Resume)
}

func (a *API) change(
	c *gin.Context, change func(
		context.Context, *apidb.Audit, apidb.Owner, apidb.Key, apidb.Match,
	) (schedulestore.Schedule, error),
) error {
	key, err := scheduleKey(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	s, err := change(ctx, audit.Entry(c), edge.OwnerOf(c), key, edge.MatchChange(c.Request))
	if err != nil {
		return err
	}
	return edge.Answer(c, http.StatusOK, a.shown(c, s))
}

// Delete is DELETE /api/schedules/{name}.
func (a *API) Delete(c *gin.Context) error {
	key, err := scheduleKey(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	if err := a.Store.Delete(ctx, audit.Entry(c), edge.OwnerOf(c), key, edge.MatchChange(c.Request)); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// Run is POST /api/schedules/{name}/run: it submits a job of the schedule at once.
func (a *API) Run(c *gin.Context) error {
	key, err := scheduleKey(c)
	if err != nil {
		return err
	}
	if err := a.Limits.AllowJobs(c, 1); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	rules := schedulestore.Rules{Rules: a.Rules, Defaults: a.Defaults, Sealer: a.Sealer}
	rules.JobTypes = []string{jobspec.AnyType} // its type was taken when it was created, and this runs in a transaction
	created, decidedBy, err := a.Store.Run(ctx, audit.Entry(c), edge.OwnerOf(c), key, edge.MatchChange(c.Request), rules)
	if err != nil {
		return err
	}
	edge.Locate(c, "/api/jobs/"+created.JobID.String())
	if decidedBy != "" {
		return edge.Answer(c, http.StatusOK, runBody{JobID: created.JobID, DecidedBy: decidedBy})
	}
	e, err := apievent.Created(created)
	if err != nil {
		return err
	}
	a.Hub.Announce(apidb.ChangeStatus, created.JobID)
	a.Outgoing.Add([]jobevent.Item{e})
	return edge.Answer(c, http.StatusAccepted, runBody{JobID: created.JobID})
}

type runBody struct {
	JobID     uuid.UUID `json:"jobId"`
	DecidedBy string    `json:"decidedBy,omitempty"`
}
