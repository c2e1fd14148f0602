package schedules

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

type ticksBody struct {
	Ticks      []tick  `json:"ticks"`
	NextCursor *string `json:"nextCursor"`
}

type tick struct {
	At         time.Time  `json:"at"`
	Outcome    string     `json:"outcome"`
	Reason     *string    `json:"reason"`
	JobID      *uuid.UUID `json:"jobId"`
	RecordedAt time.Time  `json:"recordedAt"`
}

// ListTicks is GET /api/schedules/{name}/ticks: pages by key, newest first. The cursor is an instant.
func (a *API) ListTicks(c *gin.Context) error {
	q := edge.NewQuery(c)
	if !apibody.IsScheduleName(c.Param("name")) {
		return schedulestore.ErrNone
	}
	key := q.Named(c)
	before, limit := q.Instant("cursor"), q.Integer("limit", edge.DefaultLimit, 1, edge.MaxLimit)
	if err := q.Close("ownerId", "cursor", "limit"); err != nil {
		return err
	}
	if before == nil {
		end := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
		before = &end
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	found, more, err := a.Store.Ticks(ctx, edge.OwnerOf(c), key, *before, limit)
	if err != nil {
		return err
	}
	body := ticksBody{Ticks: make([]tick, len(found))}
	for i, t := range found {
		body.Ticks[i] = tick{
			At: t.At.UTC(), Outcome: t.Outcome, Reason: jobview.Given(t.Reason), JobID: t.JobID, RecordedAt: t.RecordedAt.UTC(),
		}
	}
	body.NextCursor = edge.NextCursor(more, func() string {
		return body.Ticks[len(body.Ticks)-1].At.Format(time.RFC3339Nano)
	})
	return edge.Answer(c, http.StatusOK, body)
}
