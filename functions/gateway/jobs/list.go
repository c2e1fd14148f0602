package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

type listBody struct {
	Jobs       []jobview.Summary `json:"jobs"`
	NextCursor *string           `json:"nextCursor"`
	SearchedTo *time.Time        `json:"searchedTo"`
}

// List is GET /api/jobs: pages by key, newest first.
func (a *API) List(c *gin.Context) error {
	q := edge.NewQuery(c)
	filter := a.ReadFilter(&q)
	filter.Status = q.Statuses("status")
	filter.Event = jobstore.Event{Source: q.One("eventSource"), ID: q.One("eventId")}
	if (filter.Event.Source == "") != (filter.Event.ID == "") {
		q.Bad("eventId", "and eventSource name an event together")
	}
	if err := q.Close(append(slices.Clip(parameters), "status", "eventSource", "eventId")...); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	body, err := a.jobPage(ctx, c, filter)
	if err != nil {
		return err
	}
	return a.Audit.Show(c, body)
}

// Filters are the parameters beside status that select jobs in lists and streams, parameters are all of a list.
var (
	Filters = []string{
		"type", "queue", "tag", "orderingKey", "errorCode", "noErrorCode", "payload", "traceId", "idempotencyKey", "after",
		"batchId", "fanOutId", "q", "ownerId", "since", "until", "endedSince", "endedUntil",
	}
	parameters = append(slices.Clip(Filters), "cursor", "limit")
)

// ReadFilter reads the parameters that select jobs, and those of a page.
func (a *API) ReadFilter(q *edge.Query) jobstore.Filter {
	if a.Sealer != nil && q.Values.Has("payload") {
		q.Bad("payload", "%s", edge.PayloadsSealed)
	}
	if q.Values.Has("noErrorCode") && q.Values.Has("errorCode") {
		q.Bad("noErrorCode", "and errorCode exclude each other")
	}
	return jobstore.Filter{Filter: apibody.Filter{
		JobType: q.Checked("type", apibody.CheckJobType), Queue: q.One("queue"), Tag: q.One("tag"),
		OrderingKey: q.One("orderingKey"), ErrorCode: q.One("errorCode"), NoErrorCode: q.Yes("noErrorCode"),
		Payload: q.Checked("payload", apibody.CheckPayloadFilter),
		TraceID: q.UUID("traceId"), After: q.UUID("after"), BatchID: q.UUID("batchId"), FanOutID: q.UUID("fanOutId"),
		IdempotencyKey: q.One("idempotencyKey"), Search: q.Label("q"), OwnerID: q.Checked("ownerId", apibody.CheckOwner),
		Since: q.Instant("since"), Until: q.Instant("until"),
		EndedSince: q.Instant("endedSince"), EndedUntil: q.Instant("endedUntil"),
	}, Before: q.Cursor("cursor"), Limit: q.Integer("limit", edge.DefaultLimit, 1, edge.MaxLimit)}
}

func (a *API) jobPage(ctx context.Context, c *gin.Context, filter jobstore.Filter) (listBody, error) {
	jobs, next, err := search(ctx, a.Store, edge.OwnerOf(c), filter, searchTime)
	if err != nil {
		return listBody{}, err
	}
	body := listBody{Jobs: make([]jobview.Summary, len(jobs))}
	for i := range jobs {
		a.Open(ctx, &jobs[i])
		body.Jobs[i] = jobview.New(jobs[i])
	}
	if next != uuid.Nil {
		cursor := next.String()
		body.NextCursor = &cursor
		if len(jobs) < filter.Limit {
			at := time.Unix(next.Time().UnixTime()).UTC()
			body.SearchedTo = &at
		}
	}
	return body, nil
}
