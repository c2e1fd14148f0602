package alerts

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/alertstore"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// The states of an alert.
const (
	stateOK     = "OK"
	stateFiring = "FIRING"
)

type alert struct {
	Name          string               `json:"name"`
	OwnerID       *string              `json:"ownerId"`
	JobType       *string              `json:"jobType"`
	Queue         *string              `json:"queue"`
	ErrorCode     *string              `json:"errorCode"`
	Failures      int32                `json:"failures"`
	Percent       *int32               `json:"percent"`
	WindowMinutes int32                `json:"windowMinutes"`
	QuietMinutes  int32                `json:"quietMinutes"`
	To            *jobspec.Destination `json:"to"`
	Paused        bool                 `json:"paused"`
	State         string               `json:"state"`
	FiringSince   *time.Time           `json:"firingSince"`
	AnnouncedAt   *time.Time           `json:"announcedAt"`
	Failed        int64                `json:"failed"`
	Ended         int64                `json:"ended"`
	CreatedAt     time.Time            `json:"createdAt"`
	UpdatedAt     time.Time            `json:"updatedAt"`
	Sealed        []string             `json:"sealed,omitempty"` // members that cannot be shown
}

// open converts an alert for a response. The destination of an alert that cannot be opened is null.
func (a *API) open(ctx context.Context, s alertstore.Alert) alert {
	body := alert{
		Name: s.Name, OwnerID: jobview.Given(s.OwnerID), JobType: jobview.Given(s.JobType), Queue: jobview.Given(s.Queue),
		ErrorCode: jobview.Given(s.ErrorCode), Failures: s.Failures, WindowMinutes: s.WindowMinutes,
		QuietMinutes: s.QuietMinutes, Paused: s.Paused, State: stateOK, FiringSince: jobview.UTC(s.FiringSince),
		AnnouncedAt: jobview.UTC(s.AnnouncedAt), Failed: s.Failed, Ended: s.Ended,
		CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
	}
	if s.Percent > 0 {
		body.Percent = &s.Percent
	}
	if s.FiringSince != nil {
		body.State = stateFiring
	}
	to, err := s.Open(a.Sealer)
	if err != nil {
		body.Sealed = []string{"to"}
		a.Sealed.Log(ctx, body.Sealed)
		return body
	}
	to = to.Shown()
	body.To = &to
	return body
}

// shown is open for the response that shows the one alert: it has the tag that If-Match compares.
func (a *API) shown(c *gin.Context, s alertstore.Alert) alert {
	c.Header("ETag", edge.ChangeTag(s.UpdatedAt))
	return a.open(c.Request.Context(), s)
}

type page struct {
	Alerts     []alert `json:"alerts"`
	NextCursor *string `json:"nextCursor"`
}

type notice struct {
	NoticeID uuid.UUID `json:"noticeId"`
	At       time.Time `json:"at"`
	State    string    `json:"state"`
	Failed   int64     `json:"failed"`
	Ended    int64     `json:"ended"`
	JobID    uuid.UUID `json:"jobId"`
}

type noticePage struct {
	Notices    []notice `json:"notices"`
	NextCursor *string  `json:"nextCursor"`
}

type testBody struct {
	JobID uuid.UUID `json:"jobId"`
}
