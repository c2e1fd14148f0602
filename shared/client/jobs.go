package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

const idempotencyKey = "Idempotency-Key"

// Submit submits a job. A request without an IdempotencyKey gets a random one, so that a repeated request makes no
// second job.
func (c *Client) Submit(ctx context.Context, job JobRequest) (Accepted, error) {
	var accepted Accepted
	_, err := c.json(ctx, submission("/api/jobs", job.key()), job, &accepted)
	return accepted, err
}

// SubmitJSON submits the JSON of a JobRequest unchanged. The request is repeated only if it has an idempotencyKey or a
// jobId.
func (c *Client) SubmitJSON(ctx context.Context, job []byte) (Accepted, error) {
	var named struct {
		IdempotencyKey string `json:"idempotencyKey"`
		JobID          string `json:"jobId"`
	}
	_ = json.Unmarshal(job, &named) // the gateway reports what is wrong with invalid JSON
	var accepted Accepted
	_, err := c.do(ctx, request{
		method: http.MethodPost, path: "/api/jobs", contentType: "application/json", body: job, jobs: true,
		repeatable: named.IdempotencyKey+named.JobID != "",
	}, &accepted)
	return accepted, err
}

// Run submits a job and returns it once it has ended. A job that is FAILED or CANCELLED is returned with an
// *EndedError.
func (c *Client) Run(ctx context.Context, job JobRequest) (*Job, error) {
	accepted, err := c.Submit(ctx, job)
	if err != nil {
		return nil, err
	}
	ended, err := c.Wait(ctx, accepted.JobID)
	if err != nil {
		return nil, err
	}
	return ended, ended.Err()
}

// submission returns a POST that makes one job, even if it is repeated.
func submission(path, key string) request {
	r := request{method: http.MethodPost, path: path, jobs: true, repeatable: true}
	if key == "" {
		r.headers = []string{idempotencyKey, rand.Text()}
	}
	return r
}

// BatchResult is the result of one job of a batch submit.
type BatchResult struct {
	Status int    `json:"status"` // 202; 200 if the idempotency key was used before; or the status of Error
	JobID  string `json:"jobId"`
	Error  *Error `json:"error"` // nil: the job was accepted
}

// maxBatch is the most jobs that the gateway takes at once.
const maxBatch = 1000

// SubmitBatch submits any number of jobs, 1,000 in each request, and returns a result for each, in their order. Refused
// jobs do not hold up others. Each job without an IdempotencyKey gets one. After an error the results are those of the
// jobs that were submitted before it.
func (c *Client) SubmitBatch(ctx context.Context, jobs []JobRequest) ([]BatchResult, error) {
	var all []BatchResult
	for part := range slices.Chunk(jobs, maxBatch) {
		part = slices.Clone(part)
		for i := range part {
			if part[i].key() == "" {
				part[i].IdempotencyKey = rand.Text()
			}
		}
		var answer struct {
			Results []BatchResult `json:"results"`
		}
		r := request{method: http.MethodPost, path: "/api/jobs/batch", jobs: true, repeatable: true}
		if _, err := c.json(ctx, r, map[string]any{"jobs": part}, &answer); err != nil {
			return all, err
		}
		if len(answer.Results) != len(part) {
			return all, fmt.Errorf("%d jobs have %d results", len(part), len(answer.Results))
		}
		all = append(all, answer.Results...)
	}
	return all, nil
}

// Get reads a job; with wait above zero the answer is held until the job ends, at most for that time and at most for a
// minute.
func (c *Client) Get(ctx context.Context, id string, wait time.Duration) (*Job, error) {
	var job Job
	raw, err := c.do(ctx, request{method: http.MethodGet, path: held(place("jobs", id), wait)}, &job)
	job.Raw = raw
	return &job, err
}

// Filter selects jobs: a job must match all fields that are set.
type Filter struct {
	Status         []string // one of these
	Type           string
	Queue          string
	Tag            string
	OrderingKey    string
	ErrorCode      string
	TraceID        string
	IdempotencyKey string
	BatchID        string
	FanOutID       string // jobs of its elements
	After          string // jobs that name this job in their own After
	NoErrorCode    bool   // never failed, or last with no error code
	Payload        string // a path in the payload, a colon and the value there: order.id:17
	EventSource    string // with EventID: the job that this CloudEvent submitted
	EventID        string
	Search         string // q
	OwnerID        string
	Since, Until   time.Time // accepted at Since or later, and before Until

	EndedSince, EndedUntil time.Time // ended at EndedSince or later, and before EndedUntil
}

func (f Filter) values() url.Values {
	values := given("type", f.Type, "queue", f.Queue, "tag", f.Tag, "orderingKey", f.OrderingKey, "errorCode", f.ErrorCode,
		"traceId", f.TraceID, "idempotencyKey", f.IdempotencyKey, "batchId", f.BatchID, "fanOutId", f.FanOutID,
		"payload", f.Payload, "q", f.Search, "ownerId", f.OwnerID, "after", f.After,
		"eventSource", f.EventSource, "eventId", f.EventID, "since", instant(f.Since), "until", instant(f.Until),
		"endedSince", instant(f.EndedSince), "endedUntil", instant(f.EndedUntil))
	if len(f.Status) > 0 {
		values["status"] = f.Status
	}
	if f.NoErrorCode {
		values.Set("noErrorCode", "true")
	}
	return values
}

// Page is a page of a list of jobs.
type Page struct {
	Jobs       []Job  `json:"jobs"`
	NextCursor string `json:"nextCursor"` // empty: it is the last page

	// SearchedTo is set where the search took too long for a whole page: jobs that were accepted before are still to be
	// searched, with the cursor.
	SearchedTo *time.Time `json:"searchedTo"`
}

// ListPage reads a page of at most limit jobs, newest first. limit is up to 200; 0 means 50. The cursor comes from the
// previous page; empty: read the first page.
func (c *Client) ListPage(ctx context.Context, filter Filter, limit int, cursor string) (Page, error) {
	values := filter.values()
	if limit > 0 {
		values.Set("limit", strconv.Itoa(limit))
	}
	if cursor != "" {
		values.Set("cursor", cursor)
	}
	var page Page
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/api/jobs" + query(values)}, &page)
	return page, err
}

// List reads all jobs that match a filter, newest first, page by page. It ends after an error.
func (c *Client) List(ctx context.Context, filter Filter) iter.Seq2[*Job, error] {
	return each(func(cursor string) ([]Job, string, error) {
		page, err := c.ListPage(ctx, filter, 200, cursor)
		return page.Jobs, page.NextCursor, err
	})
}

// each reads all pages of a list, the first one with an empty cursor.
func each[T any](read func(cursor string) (page []T, next string, err error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for cursor := ""; ; {
			page, next, err := read(cursor)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page {
				if !yield(&page[i], nil) {
					return
				}
			}
			if cursor = next; cursor == "" {
				return
			}
		}
	}
}

// Command sends a command without a body, cancel or retry, and returns its number. A command whose answer was lost is
// not repeated, because the job's state may no longer allow it.
func (c *Client) Command(ctx context.Context, id, command string) (number int, err error) {
	return c.command(ctx, request{method: http.MethodPost, path: place("jobs", id, command)}, nil)
}

func (c *Client) command(ctx context.Context, r request, in any) (number int, err error) {
	var kept struct {
		Command int `json:"command"`
	}
	_, err = c.json(ctx, r, in, &kept)
	return kept.Command, err
}

// Cancel cancels a job. If the job ends before the command takes effect, it keeps that end.
func (c *Client) Cancel(ctx context.Context, id string) error {
	_, err := c.Command(ctx, id, "cancel")
	return err
}

// Retry runs a FAILED or CANCELLED job again.
func (c *Client) Retry(ctx context.Context, id string) error {
	_, err := c.Command(ctx, id, "retry")
	return err
}

// Reschedule sets another instant for a job that has not started.
func (c *Client) Reschedule(ctx context.Context, id string, at time.Time) error {
	r := request{method: http.MethodPost, path: place("jobs", id, "reschedule")}
	_, err := c.command(ctx, r, map[string]any{"runAt": at})
	return err
}

// Delete removes a job that has ended.
func (c *Client) Delete(ctx context.Context, id string) error {
	_, err := c.command(ctx, request{method: http.MethodDelete, path: place("jobs", id)}, nil)
	return err
}

// Change changes a job that has not started. The change is a JSON Merge Patch: a map whose members replace those of
// the request. A nil member restores the default.
func (c *Client) Change(ctx context.Context, id string, change map[string]any) error {
	_, err := c.command(ctx, request{
		method: http.MethodPatch, path: place("jobs", id), contentType: "application/merge-patch+json",
	}, change)
	return err
}

// RunAgain submits the request of a job once more, with changes as in Change; nil: without changes.
func (c *Client) RunAgain(ctx context.Context, id string, change map[string]any) (Accepted, error) {
	if change == nil {
		change = map[string]any{}
	}
	key, _ := change["idempotencyKey"].(string)
	var accepted Accepted
	_, err := c.json(ctx, submission(place("jobs", id, "run-again"), key), change, &accepted)
	return accepted, err
}

// Logs reads the last lines of a job's log, oldest first. Attempt 0 stands for all attempts. next is the cursor for the
// lines before these; empty: there are none.
func (c *Client) Logs(
	ctx context.Context, id string, attempt int, cursor string,
) (lines []LogLine, next string, err error) {
	values := url.Values{}
	if attempt > 0 {
		values.Set("attempt", strconv.Itoa(attempt))
	}
	if cursor != "" {
		values.Set("cursor", cursor)
	}
	var page struct {
		Logs       []LogLine `json:"logs"`
		NextCursor string    `json:"nextCursor"`
	}
	_, err = c.do(ctx, request{method: http.MethodGet, path: place("jobs", id, "logs") + query(values)}, &page)
	return page.Logs, page.NextCursor, err
}

// Callback reports how an attempt that an outside system works on is doing, or has ended.
type Callback struct {
	JobID     string    `json:"jobId"`
	Attempt   int       `json:"attempt"`
	Status    string    `json:"status"` // Completed, Failed or CallbackProgress
	Output    any       `json:"output,omitempty"`
	ErrorCode string    `json:"errorCode,omitempty"`
	Message   string    `json:"message,omitempty"`
	Retryable *bool     `json:"retryable,omitempty"` // new(false): no retry; nil: the job is retried
	Progress  *Progress `json:"progress,omitempty"`
}

// CallbackProgress is the status of a Callback of an attempt that has not ended.
const CallbackProgress = "PROGRESS"

// Callback reports the end or the progress of a WAITING attempt, with the secret that its handler passed on.
func (c *Client) Callback(ctx context.Context, secret string, callback Callback) error {
	r := request{
		method: http.MethodPost, path: "/api/jobs/callback", headers: []string{"X-Callback-Secret", secret}, repeatable: true,
	}
	_, err := c.json(ctx, r, callback, nil)
	return err
}

// Wait returns a job once it has ended, however it ended: see Job.Err. It keeps waiting during a restart of the
// gateway.
func (c *Client) Wait(ctx context.Context, id string) (*Job, error) {
	for {
		job, err := c.Await(ctx, id, maxWait, func(error) {})
		if err != nil || job.Terminal() {
			return job, err
		}
		if err := ctx.Err(); err != nil {
			return job, errors.Join(err, fmt.Errorf("job %s is %s", id, job.Status))
		}
	}
}
