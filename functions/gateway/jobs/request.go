package jobs

import (
	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// Request returns the request of a job with its payload opened, and the number of its last command.
func (a *API) Request(c *gin.Context, id uuid.UUID) (req jobspec.Request, command int, err error) {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	req, command, err = a.Store.Request(edge.WithShare(ctx, c), edge.OwnerOf(c), id)
	if err == nil {
		req.Payload, err = a.Sealer.Open(sealing.OfJob(id, sealing.Payload), req.Payload)
	}
	return req, command, err
}
