package schedules

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// maxUpcoming is how many of the next ticks are shown.
const maxUpcoming = 5

type schedule struct {
	Name      string          `json:"name"`
	OwnerID   *string         `json:"ownerId"`
	Cron      string          `json:"cron"`
	TimeZone  string          `json:"timeZone"`
	Job       json.RawMessage `json:"job"`
	Overlap   string          `json:"overlap"`
	Missed    string          `json:"missed"`
	Paused    bool            `json:"paused"`
	StartAt   *time.Time      `json:"startAt"`
	EndAt     *time.Time      `json:"endAt"`
	NextAt    *time.Time      `json:"nextAt"`
	Upcoming  []time.Time     `json:"upcoming"`
	LastAt    *time.Time      `json:"lastAt"`
	LastJobID *uuid.UUID      `json:"lastJobId"`
	CreatedAt time.Time       `json:"createdAt"`
	UpdatedAt time.Time       `json:"updatedAt"`
	DefinedBy *string         `json:"definedBy"`        // the job type whose workers define it in code
	Sealed    []string        `json:"sealed,omitempty"` // members that cannot be shown
}

func newSchedule(s schedulestore.Schedule) schedule {
	body := schedule{
		Name: s.Name, OwnerID: jobview.Given(s.OwnerID), Cron: s.Cron, TimeZone: s.TimeZone, Job: s.Job, Overlap: s.Overlap,
		Missed: s.Missed, Paused: s.Paused, StartAt: jobview.UTC(s.StartAt), EndAt: jobview.UTC(s.EndAt),
		Upcoming: jobview.List(s.Upcoming(maxUpcoming)), LastAt: jobview.UTC(s.LastAt), LastJobID: s.LastJobID,
		CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(), DefinedBy: s.DefinedBy,
	}
	for i, at := range body.Upcoming {
		body.Upcoming[i] = at.UTC()
	}
	if len(body.Upcoming) > 0 {
		body.NextAt = &body.Upcoming[0]
	}
	return body
}

// shown is open for the response that shows the one schedule: it has the tag that If-Match compares.
func (a *API) shown(c *gin.Context, s schedulestore.Schedule) schedule {
	c.Header("ETag", edge.ChangeTag(s.UpdatedAt))
	return a.open(c.Request.Context(), s)
}

// open converts a schedule for a response. The job of a schedule that cannot be opened is null.
func (a *API) open(ctx context.Context, s schedulestore.Schedule) schedule {
	err := s.Open(a.Sealer)
	body := newSchedule(s)
	if err != nil {
		body.Sealed = []string{"job"}
		a.Sealed.Log(ctx, body.Sealed)
	}
	return body
}

// seal seals a schedule's job. Its owner and name are known at this point.
func (a *API) seal(asked *apibody.Schedule) {
	asked.JobJSON = a.Sealer.Seal(sealing.OfSchedule(asked.Name, asked.Job.OwnerID), asked.JobJSON)
}
