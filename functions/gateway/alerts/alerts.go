// Package alerts serves alerts and their notices.
package alerts

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/changes"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/publishbuffer"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/alertstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/outbound"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// API has the endpoints of alerts.
type API struct {
	Store    *alertstore.Store
	Hub      *changes.Hub
	Outgoing *publishbuffer.Buffer
	Limits   *edge.Limits
	Queues   []string // of the installation
	Sealer   *sealing.Sealer
	Sealed   *edge.SealWarning
}

// ownerOf returns the owner whose alerts a request reaches. An alert without an owner is the installation's, and counts
// the jobs of all owners: some is false for a key that sees only the jobs without an owner, which reaches no alert.
func ownerOf(c *gin.Context) (owner apidb.Owner, some bool) {
	owner = edge.OwnerOf(c)
	return owner, owner.IsEveryone() || owner.ID() != ""
}

// read reads the alert in a request, and gives it to its owner: the installation may name one.
func read(c *gin.Context, named *string) (asked apibody.Alert, err error) {
	owner, some := ownerOf(c)
	if !some {
		return asked, apierror.New(apierror.Forbidden,
			"alerts are for a key of an owner, or for an admin of the installation")
	}
	asked, err = edge.ReadAs(c, apibody.MaxAlertBytes, func(body []byte) (apibody.Alert, error) {
		return apibody.DecodeAlert(body, outbound.CheckURL)
	})
	if err != nil {
		return asked, err
	}
	if named != nil {
		if asked.OwnerID != "" && asked.OwnerID != *named {
			return asked, badAlert("ownerId", "must be that of the query")
		}
		asked.OwnerID = *named
	}
	if named != nil && !owner.Sees(*named) {
		return asked, alertstore.ErrNone
	}
	asked.OwnerID = owner.Names(asked.OwnerID)
	return asked, nil
}

func badAlert(path, message string) error {
	return apierror.Invalid("alert", path, message)
}

// keyIn returns the key of the alert in the path, and refuses unknown parameters.
func keyIn(c *gin.Context) (key apidb.Key, owner apidb.Owner, err error) {
	owner, some := ownerOf(c)
	q := edge.NewQuery(c)
	key = q.Named(c)
	if err := q.Close("ownerId"); err != nil {
		return key, owner, err
	}
	if !some || !apibody.IsScheduleName(key.Name) {
		return key, owner, alertstore.ErrNone
	}
	return key, owner, nil
}

// Create is POST /api/alerts.
func (a *API) Create(c *gin.Context) error {
	asked, err := read(c, nil)
	if err != nil {
		return err
	}
	if asked.Name == "" {
		return badAlert("name", "is required")
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	entry, err := audit.EntryOf(c, "alert/"+asked.Name, nil)
	if err != nil {
		return err
	}
	made, err := a.Store.Create(ctx, entry, asked, a.Sealer)
	if err != nil {
		return err
	}
	return a.answerMade(c, made)
}

func (a *API) answerMade(c *gin.Context, made alertstore.Alert) error {
	edge.LocateNamed(c, "/api/alerts/", made.Name, made.OwnerID)
	return edge.Answer(c, http.StatusCreated, a.shown(c, made))
}

// Put is PUT /api/alerts/{name}.
func (a *API) Put(c *gin.Context) error {
	key, _, err := keyIn(c)
	if err != nil {
		return err
	}
	asked, err := read(c, key.OwnerID)
	if err != nil {
		return err
	}
	if asked.Name != "" && asked.Name != key.Name {
		return badAlert("name", "must be that of the path")
	}
	asked.Name = key.Name
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	kept, created, err := a.Store.Put(ctx, audit.Entry(c), asked, a.Sealer, edge.MatchChange(c.Request))
	if err != nil {
		return err
	}
	if created {
		return a.answerMade(c, kept)
	}
	return edge.Answer(c, http.StatusOK, a.shown(c, kept))
}

// List is GET /api/alerts: pages by key, sorted by name.
func (a *API) List(c *gin.Context) error {
	owner, some := ownerOf(c)
	q := edge.NewQuery(c)
	filter := alertstore.Filter{
		OwnerID: jobview.Given(q.Checked("ownerId", apibody.CheckOwner)), Firing: q.One("state") == stateFiring,
		After: q.AfterKey("cursor"), Limit: q.Integer("limit", edge.DefaultLimit, 1, edge.MaxLimit),
	}
	if state := q.One("state"); state != "" && state != stateFiring {
		q.Bad("state", "must be %s", stateFiring)
	}
	if err := q.Close("ownerId", "state", "cursor", "limit"); err != nil {
		return err
	}
	if !some {
		return edge.Answer(c, http.StatusOK, page{Alerts: []alert{}})
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	alerts, more, err := a.Store.List(ctx, owner, filter)
	if err != nil {
		return err
	}
	body := page{Alerts: make([]alert, len(alerts))}
	for i, s := range alerts {
		body.Alerts[i] = a.open(c.Request.Context(), s)
	}
	body.NextCursor = edge.NextCursor(more, func() string {
		last := alerts[len(alerts)-1]
		return last.Name + ":" + last.OwnerID
	})
	return edge.Answer(c, http.StatusOK, body)
}

// Get is GET /api/alerts/{name}.
func (a *API) Get(c *gin.Context) error {
	key, owner, err := keyIn(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	s, err := a.Store.Get(ctx, owner, key)
	if err != nil {
		return err
	}
	return edge.Answer(c, http.StatusOK, a.shown(c, s))
}
