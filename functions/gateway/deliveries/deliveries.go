// Package deliveries serves the deliveries to callback URLs.
package deliveries

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/deliverystore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

type delivery struct {
	ID         string               `json:"id"`
	JobID      uuid.UUID            `json:"jobId"`
	Version    int64                `json:"version"`
	OwnerID    *string              `json:"ownerId"`
	JobStatus  jobstate.Status      `json:"jobStatus"`
	URL        string               `json:"url"`
	Status     deliverystore.Status `json:"status"`
	Tries      int                  `json:"tries"`
	NextAt     *time.Time           `json:"nextAt"`
	LastTryAt  *time.Time           `json:"lastTryAt"`
	LastAnswer *int                 `json:"lastAnswer"`
	LastError  *string              `json:"lastError"`
	CreatedAt  time.Time            `json:"createdAt"`
	FinishedAt *time.Time           `json:"finishedAt"`
}

func newDelivery(d deliverystore.Delivery) delivery {
	return delivery{
		ID: d.ID(), JobID: d.JobID, Version: d.Version, OwnerID: jobview.Given(d.OwnerID), JobStatus: d.JobStatus, URL: d.URL,
		Status: d.Status, Tries: d.Tries, NextAt: jobview.UTC(d.NextAt), LastTryAt: jobview.UTC(d.LastTryAt),
		LastAnswer: d.LastAnswer, LastError: jobview.Given(d.LastError), CreatedAt: d.CreatedAt.UTC(),
		FinishedAt: jobview.UTC(d.FinishedAt),
	}
}

func newDeliveries(found []deliverystore.Delivery) []delivery {
	shown := make([]delivery, len(found))
	for i, d := range found {
		shown[i] = newDelivery(d)
	}
	return shown
}

type ofJobBody struct {
	Deliveries []delivery `json:"deliveries"`
}

// API has the endpoints of deliveries.
type API struct {
	Store *deliverystore.Store
}

// ListOfJob is GET /api/jobs/{jobId}/deliveries.
func (a *API) ListOfJob(c *gin.Context) error {
	id, err := edge.JobID(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	found, err := a.Store.OfJob(ctx, edge.OwnerOf(c), id, edge.MaxLimit)
	if err != nil {
		return edge.OfJob(id, err)
	}
	return edge.Answer(c, http.StatusOK, ofJobBody{Deliveries: newDeliveries(found)})
}

// Retry is POST /api/jobs/{jobId}/deliveries/{version}/retry.
func (a *API) Retry(c *gin.Context) error {
	id, err := edge.JobID(c)
	if err != nil {
		return err
	}
	version, err := strconv.ParseInt(c.Param("version"), 10, 64)
	if err != nil {
		return edge.OfJob(id, deliverystore.ErrNone)
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	again, err := a.Store.Retry(ctx, audit.Entry(c), edge.OwnerOf(c), id, version)
	if err != nil {
		return edge.OfJob(id, err)
	}
	return edge.Answer(c, http.StatusAccepted, newDelivery(again))
}

type deliveriesBody struct {
	ofJobBody
	NextCursor *string `json:"nextCursor"`
}

// List is GET /api/deliveries: pages by key. The cursor is the id of the last one.
func (a *API) List(c *gin.Context) error {
	q := edge.NewQuery(c)
	filter := deliverystore.Filter{
		Status: deliverystore.Status(q.One("status")), Limit: q.Integer("limit", edge.DefaultLimit, 1, edge.MaxLimit),
	}
	switch filter.Status {
	case "", deliverystore.Pending, deliverystore.Delivered, deliverystore.Failed:
	default:
		q.Bad("status", "must be PENDING, DELIVERED or FAILED")
	}
	filter.BeforeID, filter.BeforeVersion = q.DeliveryCursor("cursor")
	if err := q.Close("status", "limit", "cursor"); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	found, more, err := a.Store.List(ctx, edge.OwnerOf(c), filter)
	if err != nil {
		return err
	}
	body := deliveriesBody{ofJobBody: ofJobBody{Deliveries: newDeliveries(found)}}
	body.NextCursor = edge.NextCursor(more, func() string { return found[len(found)-1].ID() })
	return edge.Answer(c, http.StatusOK, body)
}
