package jobs

import (
	"encoding/json"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// wait is what the handler of a job waits for, or has waited for.
type wait struct {
	Name      string           `json:"name"`
	Status    waitstore.Status `json:"status"`
	CreatedAt time.Time        `json:"createdAt"`
	Until     *time.Time       `json:"until"`
	DoneAt    *time.Time       `json:"doneAt"`
	Event     json.RawMessage  `json:"event"`    // what it names of the event; null: it waits for a job, or it is sealed
	Received  json.RawMessage  `json:"received"` // the event that has come
	Job       *client.Called   `json:"job"`      // that the handler has called
}

// waits returns what the handler of a job has waited for. What cannot be opened is entered in job.Sealed.
func (a *API) waits(c *gin.Context, job *jobstore.Job) ([]wait, error) {
	if !job.Waits {
		return []wait{}, nil
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	stored, err := a.Waits.OfJob(ctx, waitstore.Parent{JobID: job.JobID, OwnerID: job.OwnerID})
	if err != nil {
		return nil, err
	}
	shown := make([]wait, len(stored))
	open := a.opener(ctx, job, "waits")
	for i := range stored {
		w := &stored[i]
		shown[i] = wait{
			Name: w.Name, Status: w.Status,
			CreatedAt: w.CreatedAt.UTC(), Until: jobview.UTC(w.Until), DoneAt: jobview.UTC(w.DoneAt),
			Event:    open(sealing.OfJob(job.JobID, sealing.Wait), []byte(w.Sealed)),
			Received: open(sealing.OfJob(w.EventNumber, sealing.Payload), w.Event),
		}
		if w.Child != nil {
			shown[i].Job = &client.Called{
				JobID: w.Child.JobID.String(), JobType: w.Child.JobType, Status: string(w.Child.Status),
			}
		}
	}
	return shown, nil
}
