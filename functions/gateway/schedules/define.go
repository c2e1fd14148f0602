package schedules

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/jobtypes"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
)

const maxDefinedBytes = 4 << 20

// Define is PUT /api/job-types/{type}/schedules: a worker that starts sends the schedules that its task has in code.
func (a *API) Define(c *gin.Context) error {
	jobType, err := jobtypes.NameIn(c)
	if err != nil {
		return err
	}
	all, err := edge.ReadAs(c, maxDefinedBytes, func(body []byte) ([]apibody.Schedule, error) {
		return apibody.DecodeDefinedSchedules(body, jobType)
	})
	if err != nil {
		return err
	}
	owner := apidb.OwnerOf(edge.MakerOf(c).ID()) // whatever owner a job names
	check := a.Payloads.Check(c.Request.Context())
	for i := range all {
		if err := apibody.Within(fmt.Sprintf("schedules[%d]", i), a.check(&all[i], owner, check)); err != nil {
			return err
		}
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	if err := a.Store.Define(ctx, audit.Entry(c), owner.ID(), jobType, all, a.Sealer); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}
