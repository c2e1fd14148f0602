// Package apiload puts load on JobWeaver through its public API, and reads the results through it.
package apiload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// lookEvery is the pause between two reads of the API.
const lookEvery = 20 * time.Millisecond

// ErrRefused is a 503 or a 429: the gateway has no room or no database at the moment, or the client sends too many
// requests.
var ErrRefused = errors.New("refused for the moment")

// API is a client of one gateway, with persistent connections.
type API struct {
	base, key string
	http      *http.Client
}

// New makes a client for the gateway at base.
func New(base string) *API {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		MaxIdleConnsPerHost: 1024,
		MaxConnsPerHost:     1024, // beyond them requests wait here, and this time counts, too
		DisableCompression:  true,
	}
	return &API{base: strings.TrimRight(base, "/"), http: &http.Client{Transport: transport, Timeout: 2 * time.Minute}}
}

// As returns a client on the same connections that sends an API key.
func (a *API) As(key string) *API { return &API{base: a.base, key: key, http: a.http} }

// Owned returns a client with a new key of an owner, which this client makes as an administrator.
func (a *API) Owned(ctx context.Context, owner string) (*API, error) {
	var made struct{ Key string }
	err := a.Do(ctx, http.MethodPost, "/api/keys", fmt.Sprintf(
		`{"ownerId":%q,"name":%[1]q,"roles":["submit","read","operate","work"]}`, owner), &made)
	return a.As(made.Key), err
}

// Do sends a request and reads the answer, whose status must be a 2xx, into out; nil: nowhere.
func (a *API) Do(ctx context.Context, method, path, body string, out any) error {
	status, answer, err := a.send(ctx, method, path, []byte(body))
	switch {
	case err != nil:
		return err
	case status/100 != 2:
		return unexpected(method, path, status, answer)
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer, out)
}

// Close closes the connections.
func (a *API) Close() { a.http.CloseIdleConnections() }

// call sends a request and returns the body of the expected answer.
func (a *API) call(ctx context.Context, method, path string, body []byte, want int) ([]byte, error) {
	status, answer, err := a.send(ctx, method, path, body)
	if err == nil && status != want {
		err = unexpected(method, path, status, answer)
	}
	return answer, err
}

// send returns any answer.
func (a *API) send(ctx context.Context, method, path string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("make request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.key != "" {
		req.Header.Set("Authorization", "Bearer "+a.key)
	}
	res, err := a.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	answer, err = io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return 0, nil, fmt.Errorf("read answer: %w", err)
	}
	return res.StatusCode, answer, nil
}

func unexpected(method, path string, status int, answer []byte) error {
	switch status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return fmt.Errorf("%s %s: %w", method, path, ErrRefused)
	default:
		return fmt.Errorf("%s %s: %d %s", method, path, status, answer[:min(len(answer), 500)])
	}
}

// Submit submits one job and returns its id.
func (a *API) Submit(ctx context.Context, request []byte) (string, error) {
	answer, err := a.call(ctx, http.MethodPost, "/api/jobs", request, http.StatusAccepted)
	if err != nil {
		return "", err
	}
	id, ok := firstID(answer)
	if !ok {
		return "", fmt.Errorf("answer without a jobId: %s", answer)
	}
	return id, nil
}

// Batch returns a body for POST /api/jobs/batch: n times the same request.
func Batch(request string, n int) []byte {
	return []byte(`{"jobs":[` + strings.TrimSuffix(strings.Repeat(request+",", n), ",") + `]}`)
}

// KeyedBatch returns a batch of a request n times, with the fairness keys from one on, of so many in turn.
func KeyedBatch(request string, n, from, keys int) []byte {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`%s,"fairnessKey":"key-%d"}`, strings.TrimSuffix(request, "}"), (from+i)%keys)
	}
	return []byte(`{"jobs":[` + strings.Join(all, ",") + `]}`)
}

// SubmitBatch submits a batch of n jobs, all of which have to be accepted, and returns the last one's id.
func (a *API) SubmitBatch(ctx context.Context, batch []byte, n int) (last string, err error) {
	answer, err := a.call(ctx, http.MethodPost, "/api/jobs/batch", batch, http.StatusOK)
	if err != nil {
		return "", err
	}
	// Decoding thousands of results would cost the machine that is measured.
	if accepted := bytes.Count(answer, []byte(`"status":202`)); accepted != n {
		return "", fmt.Errorf("only %d of %d jobs were accepted: %s", accepted, n, answer[:min(len(answer), 500)])
	}
	last, ok := firstID(answer[bytes.LastIndex(answer, []byte(`"jobId"`)):])
	if !ok {
		return "", errors.New("answer without a jobId")
	}
	return last, nil
}

// firstID finds the first jobId in an answer.
func firstID(answer []byte) (string, bool) {
	_, after, _ := bytes.Cut(answer, []byte(`"jobId":"`))
	id, _, found := bytes.Cut(after, []byte(`"`))
	return string(id), found
}

// Job is the part of a job that the bench reads.
type Job struct {
	JobID     string     `json:"jobId"`
	Status    string     `json:"status"`
	Version   int64      `json:"version"`
	StartedAt *time.Time `json:"startedAt"`
}

// Get reads a job. With wait above zero the gateway delays the answer until the job has ended, at most that long.
func (a *API) Get(ctx context.Context, id string, wait time.Duration) (Job, error) {
	path := "/api/jobs/" + id
	if wait > 0 {
		path += "?wait=" + wait.String()
	}
	var job Job
	answer, err := a.call(ctx, http.MethodGet, path, nil, http.StatusOK)
	if err != nil {
		return job, err
	}
	return job, json.Unmarshal(answer, &job)
}

// List reads a page of jobs, newest first.
func (a *API) List(ctx context.Context, query string) (jobs []Job, next string, err error) {
	answer, err := a.call(ctx, http.MethodGet, "/api/jobs?"+query, nil, http.StatusOK)
	if err != nil {
		return nil, "", err
	}
	var page struct {
		Jobs       []Job  `json:"jobs"`
		NextCursor string `json:"nextCursor"`
	}
	err = json.Unmarshal(answer, &page)
	return page.Jobs, page.NextCursor, err
}
