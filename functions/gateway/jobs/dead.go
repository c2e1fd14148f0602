package jobs

import (
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// deadPage is a page of dead jobs that was requested by its number.
type deadPage struct {
	listBody
	Page          int    `json:"page"`
	Size          int    `json:"size"`
	TotalElements *int64 `json:"totalElements"`
}

// ListDead is GET /api/jobs/dead: the FAILED jobs, newest first, by cursor or by page number. A page that would cost
// too much to reach is refused.
func (a *API) ListDead(c *gin.Context) error {
	q := edge.NewQuery(c)
	filter := a.ReadFilter(&q)
	filter.Status = []jobstate.Status{jobstate.Failed}
	page, size := q.Integer("page", 0, 0, apidb.MaxFigure), q.Integer("size", edge.DefaultLimit, 1, edge.MaxLimit)
	byNumber := q.Values.Has("page") || q.Values.Has("size")
	if byNumber && (q.Values.Has("cursor") || q.Values.Has("limit")) {
		q.Bad("page", "and size exclude cursor and limit")
	}
	if len(q.Wrong) == 0 && page*size > apidb.MaxFigure {
		q.Bad("page", "must end within the first %d jobs: go on by cursor", apidb.MaxFigure)
	}
	if err := q.Close(append(slices.Clip(parameters), "page", "size")...); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	if byNumber {
		filter.Skip, filter.Limit = page*size, size
	}
	found, err := a.jobPage(ctx, c, filter)
	if err != nil {
		return err
	}
	if !byNumber {
		return a.Audit.Show(c, found)
	}
	body := deadPage{listBody: found, Page: page, Size: size}
	total, known, err := a.Store.CountDead(ctx, edge.OwnerOf(c), filter)
	if err != nil {
		return err
	}
	if known {
		body.TotalElements = &total
	}
	return a.Audit.Show(c, body)
}
