// Package rejected serves rejected records.
package rejected

import (
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/queues"
	"github.com/jobweaver/jobweaver/shared/apidb/rejectedstore"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

type page struct {
	Rejected   []record `json:"rejected"`
	NextCursor *string  `json:"nextCursor"`
}

// API has the endpoints of rejected records.
type API struct {
	Store        *rejectedstore.Store
	Queues       *queues.Installation
	PublishAgain funchost.Redrive // publishes a record on its topic again
	Audit        *audit.Log
}

// List is GET /api/rejected: pages by key, newest first. The cursor is the number of the last record.
func (a *API) List(c *gin.Context) error {
	q := edge.NewQuery(c)
	filter := rejectedstore.Filter{
		Function: q.One("function"), Topic: q.One("topic"), Since: q.Instant("since"), Until: q.Instant("until"),
		Redriven: q.Boolean("redriven"), Before: q.Number("cursor"),
		Limit: q.Integer("limit", edge.DefaultLimit, 1, edge.MaxLimit),
	}
	if err := q.Close("function", "topic", "since", "until", "redriven", "cursor", "limit"); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	found, more, err := a.Store.List(ctx, filter)
	if err != nil {
		return err
	}
	body := page{Rejected: make([]record, len(found))}
	for i, r := range found {
		body.Rejected[i] = a.newRecord(r)
	}
	body.NextCursor = edge.NextCursor(more, func() string { return strconv.FormatInt(found[len(found)-1].Cursor(), 10) })
	return a.Audit.Show(c, body)
}

// Get is GET /api/rejected/{rejectedId}.
func (a *API) Get(c *gin.Context) error {
	id, err := edge.PathID(c, "rejectedId", rejectedstore.ErrNone)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	found, err := a.Store.Get(ctx, id)
	if err != nil {
		return err
	}
	body := wholeRecord{
		record: a.newRecord(found), Key: newRecordBytes(found.Record.Key),
		Headers: make([]recordHeader, len(found.Record.RecordHeaders)), Value: newRecordBytes(found.Record.Value),
	}
	for i, header := range found.Record.RecordHeaders {
		body.Headers[i] = recordHeader{string(header.Key), newRecordBytes(header.Value)}
	}
	return a.Audit.Show(c, body)
}

// Discard is DELETE /api/rejected/{rejectedId}.
func (a *API) Discard(c *gin.Context) error {
	id, err := edge.PathID(c, "rejectedId", rejectedstore.ErrNone)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	gone, err := a.Store.Discard(ctx, audit.Entry(c), id)
	if err != nil {
		return err
	}
	return edge.Answer(c, http.StatusOK, a.newRecord(gone))
}
