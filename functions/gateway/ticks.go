package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// pauseSchedule is POST /api/schedules/{name}/pause.
func (f *Function) pauseSchedule(c *gin.Context) error {
	return f.changeSchedule(c, f.store.schedules.Pause)
}

// resumeSchedule is POST /api/schedules/{name}/resume.
func (f *Function) resumeSchedule(c *gin.Context) error {
	return f.changeSchedule(c, f.store.schedules.Resume)
}

func (f *Function) changeSchedule(
	c *gin.Context, change func(context.Context, apidb.Owner, schedulestore.Key) (schedulestore.Schedule, error),
) error {
	key, err := scheduleKey(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	s, err := change(ctx, edge.OwnerOf(c), key)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, f.openSchedule(c.Request.Context(), s))
	return nil
}

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

// ticks is GET /api/schedules/{name}/ticks: pages by key, newest first. The cursor is an instant.
func (f *Function) ticks(c *gin.Context) error {
	q := edge.Query{Values: c.Request.URL.Query()}
	if !jobspec.IsScheduleName(c.Param("name")) {
		return schedulestore.ErrNone
	}
	key := schedulestore.Key{Name: c.Param("name"), OwnerID: jobview.Given(q.Checked("ownerId", jobspec.CheckOwner))}
	before, limit := q.Instant("cursor"), q.Integer("limit", defaultLimit, 1, maxLimit)
	if err := q.Close("ownerId", "cursor", "limit"); err != nil {
		return err
	}
	if before == nil {
		end := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
		before = &end
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	found, more, err := f.store.schedules.Ticks(ctx, edge.OwnerOf(c), key, *before, limit)
	if err != nil {
		return err
	}
	body := ticksBody{Ticks: make([]tick, len(found))}
	for i, t := range found {
		body.Ticks[i] = tick{
			At: t.At.UTC(), Outcome: t.Outcome, Reason: jobview.Given(t.Reason), JobID: t.JobID, RecordedAt: t.RecordedAt.UTC(),
		}
	}
	if more {
		cursor := body.Ticks[len(body.Ticks)-1].At.Format(time.RFC3339Nano)
		body.NextCursor = &cursor
	}
	c.JSON(http.StatusOK, body)
	return nil
}
