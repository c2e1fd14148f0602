// Package client speaks JobWeaver's public HTTP API, for the command line, the demo and the tests of
// the whole house.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Client talks to one gateway.
type Client struct {
	base string
	key  string
	http *http.Client

	answered atomic.Bool // by the gateway, at least once
}

// New makes a client for the gateway at base, with an API key where one is needed. The client follows no redirect:
// net/http would send X-Callback-Secret and the body to whatever host the answer names.
func New(base, key string) *Client {
	return &Client{base: strings.TrimRight(base, "/"), key: key, http: &http.Client{
		Timeout:       2 * time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Over has the client use another way there than net/http's own, and gives it back.
func (c *Client) Over(way http.RoundTripper) *Client {
	c.http.Transport = way
	return c
}

// Error is an error body of the API.
type Error struct {
	Status    int    `json:"status"`
	ErrorCode string `json:"errorCode"`
	Message   string `json:"message"`
	TraceID   string `json:"traceId"`
	Details   []struct {
		Path    string `json:"path"`
		Message string `json:"message"`
	} `json:"details"`

	again bool          // the gateway has done nothing, and says when to ask again
	after time.Duration // that
}

func (e *Error) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, e.ErrorCode)) + ": " + e.Message
	for _, d := range e.Details {
		if !strings.Contains(e.Message, strings.TrimSpace(d.Path+" "+d.Message)) { // a single one is in the message, too
			text += "\n  " + strings.TrimPrefix(d.Path+": "+d.Message, ": ")
		}
	}
	return text
}

// Accepted is the answer to a job that was taken.
type Accepted struct {
	JobID   string `json:"jobId"`
	TraceID string `json:"traceId"`
	Status  string `json:"status"`
}

// Job is as much of a job as people are shown; Raw is all of it.
type Job struct {
	JobID      string     `json:"jobId"`
	TraceID    string     `json:"traceId"`
	JobType    string     `json:"jobType"`
	Queue      string     `json:"queue"`
	OwnerID    string     `json:"ownerId"`
	Status     string     `json:"status"`
	Attempt    int        `json:"attempt"`
	RetryCount int        `json:"retryCount"`
	CreatedAt  time.Time  `json:"createdAt"`
	UpdatedAt  time.Time  `json:"updatedAt"`
	StartedAt  *time.Time `json:"startedAt"`
	FinishedAt *time.Time `json:"finishedAt"`
	NextRunAt  *time.Time `json:"nextRunAt"`
	BlockedBy  []Block    `json:"blockedBy"`

	CallbackDeadlineAt *time.Time `json:"callbackDeadlineAt"`
	CallbackURL        string     `json:"callbackUrl"`

	Tags      []string        `json:"tags"`
	Version   int64           `json:"version"`
	Output    json.RawMessage `json:"output"`
	Progress  *Progress       `json:"progress"`
	LastError *struct {
		ErrorCode string `json:"errorCode"`
		Message   string `json:"message"`
	} `json:"lastError"`
	History []struct {
		At      time.Time `json:"at"`
		From    string    `json:"from"`
		To      string    `json:"to"`
		Attempt int       `json:"attempt"`
		By      string    `json:"by"`
		Reason  string    `json:"reason"`
	} `json:"history"`
	Attempts []struct {
		Attempt   int    `json:"attempt"`
		Outcome   string `json:"outcome"`
		ErrorCode string `json:"errorCode"`
		Message   string `json:"message"`
	} `json:"attempts"`

	Raw json.RawMessage `json:"-"`
}

// OutputText is the output as people read it: < and not \u003c. Empty: there is none.
func (j *Job) OutputText() string {
	if len(j.Output) == 0 || string(j.Output) == "null" {
		return ""
	}
	text, err := jsontext.AppendFormat(nil, j.Output)
	if err != nil {
		return string(j.Output)
	}
	return string(text)
}

// Progress is how far a running attempt says it has come.
type Progress struct {
	Percent int    `json:"percent"`
	Message string `json:"message"`
}

// Terminal says whether the job has ended.
func (j *Job) Terminal() bool {
	return j.Status == "COMPLETED" || j.Status == "FAILED" || j.Status == "CANCELLED"
}

// Submit hands in one JobRequest.
func (c *Client) Submit(ctx context.Context, request []byte) (Accepted, error) {
	var accepted Accepted
	_, err := c.Do(ctx, http.MethodPost, "/api/jobs", "application/json", request, &accepted)
	return accepted, err
}

// Get reads a job; with wait above zero the answer is held until the job ends, at most that long.
func (c *Client) Get(ctx context.Context, id string, wait time.Duration) (*Job, error) {
	path := "/api/jobs/" + url.PathEscape(id)
	if wait > 0 {
		path += fmt.Sprintf("?wait=%dms", max(wait.Milliseconds(), 1))
	}
	var job Job
	raw, err := c.Do(ctx, http.MethodGet, path, "", nil, &job)
	job.Raw = raw
	return &job, err
}

// List reads a page of jobs, newest first.
func (c *Client) List(
	ctx context.Context, filter url.Values,
) (jobs []Job, next string, raw json.RawMessage, err error) {
	var page struct {
		Jobs       []Job   `json:"jobs"`
		NextCursor *string `json:"nextCursor"`
	}
	raw, err = c.Do(ctx, http.MethodGet, "/api/jobs?"+filter.Encode(), "", nil, &page)
	if page.NextCursor != nil {
		next = *page.NextCursor
	}
	return page.Jobs, next, raw, err
}

// Command gives a job a command without a body: cancel, retry.
func (c *Client) Command(ctx context.Context, id, command string) (number int, err error) {
	var kept struct {
		Command int `json:"command"`
	}
	_, err = c.Do(ctx, http.MethodPost, "/api/jobs/"+url.PathEscape(id)+"/"+command, "", nil, &kept)
	return kept.Command, err
}

// What Do takes upon itself where the gateway says that it is asked too often.
const (
	patience = 30 * time.Second // in all
	maxTries = 10
)

// Do sends a request and decodes the answer into out, where it is not nil. headers are pairs. To a 429 it listens:
// nothing was done, so whatever it was may be asked for again.
func (c *Client) Do(
	ctx context.Context, method, path, contentType string, body []byte, out any, headers ...string,
) (json.RawMessage, error) {
	end := time.Now().Add(patience)
	for try := 1; ; try++ {
		raw, err := c.once(ctx, method, path, contentType, body, out, headers...)
		var refused *Error
		if !errors.As(err, &refused) || !refused.again || try == maxTries || time.Until(end) < refused.after {
			return raw, err
		}
		pause := time.NewTimer(refused.after)
		select {
		case <-ctx.Done():
			pause.Stop()
			return raw, err
		case <-pause.C:
		}
	}
}

func (c *Client) once(
	ctx context.Context, method, path, contentType string, body []byte, out any, headers ...string,
) (json.RawMessage, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return nil, &url.Error{Op: "read answer of", URL: path, Err: err}
	}
	if res.StatusCode < http.StatusInternalServerError {
		c.answered.Store(true)
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		apiError := &Error{Status: res.StatusCode, Message: http.StatusText(res.StatusCode)}
		if json.Unmarshal(raw, apiError) != nil { // none of ours: a proxy's, or "an HTTP request to an HTTPS server"
			apiError.Message += foreign(raw)
		}
		if to := res.Header.Get("Location"); res.StatusCode < http.StatusBadRequest && to != "" {
			apiError.Message += fmt.Sprintf("; not followed to %q", to)
		}
		if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds >= 0 {
			apiError.again = res.StatusCode == http.StatusTooManyRequests
			apiError.after = time.Duration(min(seconds, 3600)) * time.Second
		}
		return raw, apiError
	}
	if out == nil || len(raw) == 0 {
		return raw, nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return raw, fmt.Errorf("decode answer of %s: %w", path, err)
	}
	return raw, nil
}

// foreign is the first line of a body that is short and no page.
func foreign(body []byte) string {
	text, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	if text == "" || len(text) > 200 || text[0] == '<' {
		return ""
	}
	return ": " + text
}
