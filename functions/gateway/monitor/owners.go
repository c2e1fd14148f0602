package monitor

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
)

type ownersBody struct {
	Owners []string `json:"owners"`
	More   bool     `json:"more"`
}

// ListOwners is GET /api/owners.
func (a *API) ListOwners(c *gin.Context) error {
	q := edge.NewQuery(c)
	text, limit := q.Label("q"), q.Integer("limit", edge.DefaultLimit, 1, edge.MaxLimit)
	if err := q.Close("q", "limit"); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	owners, more, err := a.Stats.Owners(ctx, text, limit)
	if err != nil {
		return err
	}
	return edge.Answer(c, http.StatusOK, ownersBody{Owners: owners, More: more})
}
