package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"time"
)

// Delivery is a request by which JobWeaver reports the end of a job to its CallbackURL.
type Delivery struct {
	ID         string     `json:"id"`
	JobID      string     `json:"jobId"`
	Version    int64      `json:"version"` // of the job
	OwnerID    string     `json:"ownerId"`
	JobStatus  string     `json:"jobStatus"`
	URL        string     `json:"url"`
	Status     string     `json:"status"` // DeliveryPending, DeliveryDelivered or DeliveryFailed
	Tries      int        `json:"tries"`
	NextAt     *time.Time `json:"nextAt"`
	LastTryAt  *time.Time `json:"lastTryAt"`
	LastAnswer int        `json:"lastAnswer"` // the status of the last answer; 0: none
	LastError  string     `json:"lastError"`
	CreatedAt  time.Time  `json:"createdAt"`
	FinishedAt *time.Time `json:"finishedAt"`
}

// The states of a delivery.
const (
	DeliveryPending   = "PENDING"
	DeliveryDelivered = "DELIVERED"
	DeliveryFailed    = "FAILED"
)

// Deliveries are the deliveries of jobs.
type Deliveries struct{ c *Client }

// List reads the deliveries of all jobs with a status, or with any if it is empty, newest first, page by page. It ends
// after an error.
func (d Deliveries) List(ctx context.Context, status string) iter.Seq2[*Delivery, error] {
	return list[Delivery](ctx, d.c, "/api/deliveries", "deliveries", given("status", status))
}

// OfJob reads the last 200 deliveries of a job, newest first.
func (d Deliveries) OfJob(ctx context.Context, jobID string) ([]Delivery, error) {
	return all[Delivery](ctx, d.c, place("jobs", jobID, "deliveries"), "deliveries")
}

// Retry sends a delivery once more.
func (d Deliveries) Retry(ctx context.Context, jobID string, version int64) (*Delivery, error) {
	path := place("jobs", jobID, "deliveries", strconv.FormatInt(version, 10), "retry")
	return answer[Delivery](ctx, d.c, request{method: http.MethodPost, path: path}, nil)
}

// RejectedRecord is a Kafka record that a function could not use. Lists leave out Key, Headers and Value.
type RejectedRecord struct {
	ID             string         `json:"id"`
	Function       string         `json:"function"`
	Topic          string         `json:"topic"`
	Partition      *int32         `json:"partition"`
	Offset         *int64         `json:"offset"`
	Reason         string         `json:"reason"`
	Bytes          int64          `json:"bytes"`
	Truncated      bool           `json:"truncated"`
	TraceID        string         `json:"traceId"`
	RecordedAt     *time.Time     `json:"recordedAt"`
	RejectedAt     time.Time      `json:"rejectedAt"`
	RedriveRefusal string         `json:"redriveRefusal"` // empty: it can be redriven
	RedrivenAt     *time.Time     `json:"redrivenAt"`
	RedrivenBy     string         `json:"redrivenBy"`
	Key            *RecordBytes   `json:"key"`
	Headers        []RecordHeader `json:"headers"`
	Value          *RecordBytes   `json:"value"`
}

// RecordHeader is a header of a record.
type RecordHeader struct {
	Name  string       `json:"name"`
	Value *RecordBytes `json:"value"`
}

// RecordBytes are bytes of a record.
type RecordBytes struct {
	Encoding string `json:"encoding"` // text or base64
	Data     string `json:"data"`
}

// RejectedFilter selects rejected records: they must match all fields that are set.
type RejectedFilter struct {
	Function, Topic string
	Since, Until    time.Time
	Redriven        *bool
}

// Rejected are the rejected records.
type Rejected struct{ c *Client }

// List reads all rejected records that match a filter, newest first, page by page. It ends after an error.
func (r Rejected) List(ctx context.Context, filter RejectedFilter) iter.Seq2[*RejectedRecord, error] {
	values := given("function", filter.Function, "topic", filter.Topic,
		"since", instant(filter.Since), "until", instant(filter.Until))
	if filter.Redriven != nil {
		values.Set("redriven", strconv.FormatBool(*filter.Redriven))
	}
	return list[RejectedRecord](ctx, r.c, "/api/rejected", "rejected", values)
}

// Get reads a record with its key, headers and value.
func (r Rejected) Get(ctx context.Context, id string) (*RejectedRecord, error) {
	return fetch[RejectedRecord](ctx, r.c, place("rejected", id))
}

// Redrive publishes a record again on its topic, once.
func (r Rejected) Redrive(ctx context.Context, id string) (*RejectedRecord, error) {
	return answer[RejectedRecord](ctx, r.c, request{method: http.MethodPost, path: place("rejected", id, "redrive")}, nil)
}

// Discard deletes a stored record.
func (r Rejected) Discard(ctx context.Context, id string) (*RejectedRecord, error) {
	return answer[RejectedRecord](ctx, r.c, request{method: http.MethodDelete, path: place("rejected", id)}, nil)
}
