// Package schedules serves schedules and their ticks.
package schedules

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/changes"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/jobtypes"
	"github.com/jobweaver/jobweaver/functions/gateway/publishbuffer"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// API has the endpoints of schedules.
type API struct {
	Store    *schedulestore.Store
	Rules    jobspec.Rules
	Defaults jobspec.TypeDefaults
	Payloads *jobtypes.Payloads
	Hub      *changes.Hub
	Outgoing *publishbuffer.Buffer
	Limits   *edge.Limits
	Audit    *audit.Log
	Sealer   *sealing.Sealer
	Sealed   *edge.SealWarning
}

// Create is POST /api/schedules.
func (a *API) Create(c *gin.Context) error {
	owner := edge.MakerOf(c)
	asked, err := a.read(c, owner)
	if err != nil {
		return err
	}
	if asked.Name == "" {
		return badSchedule("name", "is required")
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	if err := fires(asked); err != nil {
		return err
	}
	a.seal(&asked)
	entry, err := audit.EntryOf(c, "schedule/"+asked.Name, nil)
	if err != nil {
		return err
	}
	made, err := a.Store.Create(ctx, entry, owner, asked)
	if err != nil {
		return err
	}
	return a.answerMade(c, made)
}

func (a *API) answerMade(c *gin.Context, made schedulestore.Schedule) error {
	edge.LocateNamed(c, "/api/schedules/", made.Name, made.OwnerID)
	return edge.Answer(c, http.StatusCreated, a.shown(c, made))
}

// Put is PUT /api/schedules/{name}.
func (a *API) Put(c *gin.Context) error {
	key, err := scheduleKey(c)
	if err != nil {
		return err
	}
	owner := maker(c, key.OwnerID)
	asked, err := a.read(c, owner)
	if err != nil {
		return err
	}
	switch {
	case asked.Name != "" && asked.Name != key.Name:
		return badSchedule("name", "must be that of the path")
	case key.OwnerID != nil && *key.OwnerID != owner.Names(asked.Job.OwnerID):
		return badSchedule("job.ownerId", "must be that of the query")
	}
	asked.Name = key.Name
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	if err := fires(asked); err != nil {
		return err
	}
	a.seal(&asked)
	kept, created, err := a.Store.Put(ctx, audit.Entry(c), owner, asked, edge.MatchChange(c.Request))
	if err != nil {
		return err
	}
	if created {
		return a.answerMade(c, kept)
	}
	return edge.Answer(c, http.StatusOK, a.shown(c, kept))
}

type page struct {
	Schedules  []schedule `json:"schedules"`
	NextCursor *string    `json:"nextCursor"`
}

// List is GET /api/schedules: pages by key, sorted by name.
func (a *API) List(c *gin.Context) error {
	q := edge.NewQuery(c)
	filter := schedulestore.Filter{
		OwnerID: jobview.Given(q.Checked("ownerId", apibody.CheckOwner)), After: q.AfterKey("cursor"),
		Limit: q.Integer("limit", edge.DefaultLimit, 1, edge.MaxLimit),
	}
	if err := q.Close("ownerId", "cursor", "limit"); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	schedules, more, err := a.Store.List(ctx, edge.OwnerOf(c), filter)
	if err != nil {
		return err
	}
	body := page{Schedules: make([]schedule, len(schedules))}
	for i, s := range schedules {
		body.Schedules[i] = a.open(c.Request.Context(), s)
	}
	body.NextCursor = edge.NextCursor(more, func() string {
		last := schedules[len(schedules)-1]
		return last.Name + ":" + last.OwnerID
	})
	return a.Audit.Show(c, body)
}

// Get is GET /api/schedules/{name}.
func (a *API) Get(c *gin.Context) error {
	key, err := scheduleKey(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	s, err := a.Store.Get(ctx, edge.OwnerOf(c), key)
	if err != nil {
		return err
	}
	return a.Audit.Show(c, a.shown(c, s))
}
