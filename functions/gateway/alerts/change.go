package alerts

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/alertstore"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Pause is POST /api/alerts/{name}/pause.
func (a *API) Pause(c *gin.Context) error { return a.pause(c, true) }

// Resume is POST /api/alerts/{name}/resume.
func (a *API) Resume(c *gin.Context) error { return a.pause(c, false) }

func (a *API) pause(c *gin.Context, paused bool) error {
	key, owner, err := keyIn(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	s, err := a.Store.Pause(ctx, audit.Entry(c), owner, key, edge.MatchChange(c.Request), paused)
	if err != nil {
		return err
	}
	return edge.Answer(c, http.StatusOK, a.shown(c, s))
}

// Delete is DELETE /api/alerts/{name}.
func (a *API) Delete(c *gin.Context) error {
	key, owner, err := keyIn(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	if err := a.Store.Delete(ctx, audit.Entry(c), owner, key, edge.MatchChange(c.Request)); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// Test is POST /api/alerts/{name}/test: it sends a notice at once.
func (a *API) Test(c *gin.Context) error {
	key, owner, err := keyIn(c)
	if err != nil {
		return err
	}
	if err := a.Limits.AllowJobs(c, 1); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	rules := alertstore.Rules{Queues: a.Queues, Sealer: a.Sealer}
	created, err := a.Store.Test(ctx, audit.Entry(c), owner, key, edge.MatchChange(c.Request), rules)
	if err != nil {
		return err
	}
	e, err := apievent.Created(created)
	if err != nil {
		return err
	}
	a.Hub.Announce(apidb.ChangeStatus, created.JobID)
	a.Outgoing.Add([]jobevent.Item{e})
	edge.Locate(c, "/api/jobs/"+created.JobID.String())
	return edge.Answer(c, http.StatusAccepted, testBody{JobID: created.JobID})
}

// ListNotices is GET /api/alerts/{name}/notices: pages by key, newest first.
func (a *API) ListNotices(c *gin.Context) error {
	owner, some := ownerOf(c)
	q := edge.NewQuery(c)
	key := q.Named(c)
	before, limit := q.Cursor("cursor"), q.Integer("limit", edge.DefaultLimit, 1, edge.MaxLimit)
	if err := q.Close("ownerId", "cursor", "limit"); err != nil {
		return err
	}
	if !some || !apibody.IsScheduleName(key.Name) {
		return alertstore.ErrNone
	}
	if before == uuid.Nil {
		before = uuid.Max
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	found, more, err := a.Store.Notices(ctx, owner, key, before, limit)
	if err != nil {
		return err
	}
	body := noticePage{Notices: make([]notice, len(found))}
	for i, n := range found {
		body.Notices[i] = notice{
			NoticeID: n.NoticeID, At: n.At.UTC(), State: n.State, Failed: n.Failed, Ended: n.Ended, JobID: n.JobID,
		}
	}
	body.NextCursor = edge.NextCursor(more, func() string { return found[len(found)-1].NoticeID.String() })
	return edge.Answer(c, http.StatusOK, body)
}
