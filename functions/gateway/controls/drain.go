package controls

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Drain is PUT /api/workers/{workerId}/drain: the worker gets no attempts.
func (a *API) Drain(c *gin.Context) error { return a.drain(c, true) }

// Undrain is DELETE /api/workers/{workerId}/drain.
func (a *API) Undrain(c *gin.Context) error { return a.drain(c, false) }

func (a *API) drain(c *gin.Context, draining bool) error {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	workerID := c.Param("workerId")
	known, err := a.Workers.IsKnown(ctx, workerID)
	if err != nil {
		return err
	}
	if !known {
		return apierror.New(apierror.NotFound, "there is no such worker; GET /api/workers lists them")
	}
	set := func(control *jobevent.Control) { control.Paused = draining }
	_, applied, err := a.put(ctx, c, audit.Entry(c), jobevent.ControlWorker, workerID, set)
	if err != nil {
		return err
	}
	return edge.Answer(c, http.StatusOK, client.WorkerDrain{WorkerID: workerID, Draining: draining, Applied: applied})
}
