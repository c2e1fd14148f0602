package jobs

import (
	"encoding/json"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// shownStepBytes is the limit of the results of steps that are shown with the job.
const shownStepBytes = 256 << 10

// step is what a step of a job's handler returned.
type step struct {
	Name    string          `json:"name"`
	Attempt int             `json:"attempt"`
	SavedAt time.Time       `json:"savedAt"`
	Until   *time.Time      `json:"until"`
	TookMs  *int64          `json:"tookMs"`
	Result  json.RawMessage `json:"result"` // null also if it is left out, or sealed
	Bytes   int             `json:"bytes"`
}

// steps returns what the steps of a job's handler returned. What cannot be opened is entered in job.Sealed.
func (a *API) steps(c *gin.Context, job *jobstore.Job) ([]step, error) {
	if !job.Waits {
		return []step{}, nil
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	stored, err := a.Waits.StepsOfJob(ctx, job.JobID, shownStepBytes)
	if err != nil {
		return nil, err
	}
	shown := make([]step, len(stored))
	open := a.opener(ctx, job, "steps")
	for i := range stored {
		s := &stored[i]
		shown[i] = step{
			Name: s.Name, Attempt: s.Attempt, SavedAt: s.SavedAt.UTC(), Until: jobview.UTC(s.Until), TookMs: s.TookMs,
			Result: open(sealing.OfStep(job.JobID, s.Name), []byte(s.Sealed)), Bytes: s.Bytes,
		}
	}
	return shown, nil
}
