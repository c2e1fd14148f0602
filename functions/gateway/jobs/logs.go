package jobs

import (
	"fmt"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/client"
)

type logsBody struct {
	JobID      uuid.UUID        `json:"jobId"`
	Logs       []client.LogLine `json:"logs"`
	NextCursor *string          `json:"nextCursor"`

	Sealed []string `json:"sealed,omitempty"` // lines that cannot be shown
}

// GetLogs is GET /api/jobs/{jobId}/logs: pages from the end.
func (a *API) GetLogs(c *gin.Context) error {
	id, err := edge.JobID(c)
	if err != nil {
		return err
	}
	q := edge.NewQuery(c)
	filter := logstore.Filter{
		Attempt: q.Integer("attempt", 0, 1, 1<<31-1), Before: q.LogPlace("cursor"), MaxBytes: pageLogBytes,
	}
	if err := q.Close("attempt", "cursor"); err != nil {
		return err
	}
	if _, err := a.job(c, id); err != nil {
		return err
	}
	lines, next, err := a.lines(c, id, filter)
	if err != nil {
		return err
	}
	body := logsBody{JobID: id, Sealed: a.OpenLines(c.Request.Context(), id, lines), Logs: NewLogs(lines)}
	if next != nil {
		cursor := fmt.Sprintf("%d.%d", next.Attempt, next.Line)
		body.NextCursor = &cursor
	}
	return a.Audit.Show(c, body)
}
