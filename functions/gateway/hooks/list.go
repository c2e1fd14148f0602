package hooks

import (
	"maps"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

type listBody struct {
	Hooks []hookBody `json:"hooks"`
}

type hookBody struct {
	Name      string  `json:"name"`
	OwnerID   *string `json:"ownerId"`
	Signature string  `json:"signature"`
	JobType   *string `json:"jobType"`   // null: each request decides, or becomes an event
	EventType *string `json:"eventType"` // null: each request decides, or becomes a job

	Accepted      int64                 `json:"accepted"`
	Replayed      int64                 `json:"replayed"`
	Rejected      int64                 `json:"rejected"`
	LastRejection *client.HookRejection `json:"lastRejection"`
}

// List is GET /api/hooks: the hooks of the request's owner, with the counts of this gateway since it started.
func (a *API) List(c *gin.Context) error {
	all := a.all()
	body := listBody{Hooks: []hookBody{}}
	p, sees := access.Of(c.Request.Context()), edge.IsInstallation(c)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		hook := all[name]
		if !sees && hook.Owner != p.Owner {
			continue
		}
		shown := hookBody{
			Name: name, OwnerID: jobview.Given(hook.Owner), Signature: hook.Signature, JobType: jobview.Given(hook.JobType()),
			EventType: jobview.Given(hook.EventType()),
		}
		if counts := a.counts[name]; counts != nil {
			shown.Accepted, shown.Replayed, shown.Rejected = counts.accepted, counts.replayed, counts.rejected
			shown.LastRejection = counts.last
		}
		body.Hooks = append(body.Hooks, shown)
	}
	return edge.Answer(c, http.StatusOK, body)
}
