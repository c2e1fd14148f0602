package gateway

import (
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// deadPage is a page of dead jobs that was asked for by its number.
type deadPage struct {
	listBody
	Page          int    `json:"page"`
	Size          int    `json:"size"`
	TotalElements *int64 `json:"totalElements"`
}

// dead is GET /api/jobs/dead: the FAILED jobs, newest first, by cursor or by the page's number. A page so far
// back that its way there would cost too much is refused.
func (f *Function) dead(c *gin.Context) error {
	q := edge.Query{Values: c.Request.URL.Query()}
	filter := listFilter(&q)
	filter.Status = []jobstate.Status{jobstate.Failed}
	page, size := q.Integer("page", 0, 0, apidb.MaxFigure), q.Integer("size", defaultLimit, 1, maxLimit)
	byNumber := q.Values.Has("page") || q.Values.Has("size")
	if byNumber && (q.Values.Has("cursor") || q.Values.Has("limit")) {
		q.Bad("page", "and size exclude cursor and limit")
	}
	if len(q.Wrong) == 0 && page*size > apidb.MaxFigure {
		q.Bad("page", "must end within the first %d jobs: go on by cursor", apidb.MaxFigure)
	}
	if err := q.Close(append(slices.Clip(listParameters), "page", "size")...); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	if byNumber {
		filter.Skip, filter.Limit = page*size, size
	}
	found, err := f.jobPage(ctx, c, filter)
	if err != nil {
		return err
	}
	if !byNumber {
		return f.show(c, found)
	}
	body := deadPage{listBody: found, Page: page, Size: size}
	total, known, err := f.store.jobs.CountDead(ctx, edge.OwnerOf(c), filter)
	if err != nil {
		return err
	}
	if known {
		body.TotalElements = &total
	}
	return f.show(c, body)
}
