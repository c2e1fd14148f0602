package keys

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

type meBody struct {
	Actor        string        `json:"actor"`
	OwnerID      *string       `json:"ownerId"`
	Roles        []access.Role `json:"roles"`
	Installation bool          `json:"installation"`
	TraceURL     *string       `json:"traceUrl"`
	Sealing      bool          `json:"sealing"`
}

// Me is GET /api/me.
func (a *API) Me(c *gin.Context) error {
	p := access.Of(c.Request.Context())
	return edge.Answer(c, http.StatusOK, meBody{
		Actor: p.Actor, OwnerID: jobview.Given(p.Owner), Roles: jobview.List(p.Roles),
		Installation: p.May(access.Installation), TraceURL: jobview.Given(a.TraceURL), Sealing: a.Sealing,
	})
}
