package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The kinds of an *Error, for errors.Is.
var (
	ErrInvalid      = errors.New("the request is invalid")                  // 400, 413, 415
	ErrUnauthorized = errors.New("no valid API key or token")               // 401
	ErrForbidden    = errors.New("the key or token does not allow it")      // 403
	ErrNotFound     = errors.New("there is no such thing")                  // 404
	ErrConflict     = errors.New("the state or the key does not allow it")  // 409
	ErrChanged      = errors.New("it has changed since it was read")        // 412
	ErrRateLimited  = errors.New("too many requests")                       // 429
	ErrUnavailable  = errors.New("the gateway cannot answer at the moment") // 502, 503, 504
)

var kinds = map[int]error{
	http.StatusBadRequest: ErrInvalid, http.StatusRequestEntityTooLarge: ErrInvalid,
	http.StatusUnsupportedMediaType: ErrInvalid, http.StatusUnauthorized: ErrUnauthorized,
	http.StatusForbidden: ErrForbidden, http.StatusNotFound: ErrNotFound, http.StatusConflict: ErrConflict,
	http.StatusPreconditionFailed: ErrChanged,
	http.StatusTooManyRequests:    ErrRateLimited, http.StatusBadGateway: ErrUnavailable,
	http.StatusServiceUnavailable: ErrUnavailable, http.StatusGatewayTimeout: ErrUnavailable,
}

// Error is an unsuccessful answer of the API: its problem details (RFC 9457), with the members that JobWeaver adds.
// docs/errors.md lists the codes.
type Error struct {
	Type     string `json:"type,omitempty"`
	Title    string `json:"title,omitempty"`
	Instance string `json:"instance,omitempty"`

	Status    int           `json:"status"`
	ErrorCode string        `json:"errorCode"` // as API.JOB_NOT_FOUND; empty: the answer is not JobWeaver's
	Message   string        `json:"message"`
	JobID     string        `json:"jobId"`
	TraceID   string        `json:"traceId"`
	Details   []ErrorDetail `json:"details"`

	RetryAfter time.Duration `json:"-"` // after which another try is allowed; meaningful only if the answer names it
	hasRetry   bool
}

// ErrorDetail describes one problem of a request.
type ErrorDetail struct {
	Path    string `json:"path"` // as payload.steps[3].durationMs; empty: the whole body
	Message string `json:"message"`
}

// Error returns the status, the code, the message and the details.
func (e *Error) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, e.ErrorCode)) + ": " + e.Message
	for _, d := range e.Details {
		if !strings.Contains(e.Message, strings.TrimSpace(d.Path+" "+d.Message)) { // a single detail is in the message, too
			text += "\n  " + strings.TrimPrefix(d.Path+": "+d.Message, ": ")
		}
	}
	return text
}

// Is reports whether the error is of one of the kinds above.
func (e *Error) Is(kind error) bool { return kinds[e.Status] == kind && kind != nil }

// newError reads an unsuccessful answer. The answer may not be JobWeaver's: a proxy may have sent it, or a server that
// got "an HTTP request to an HTTPS server".
func newError(res *http.Response, body []byte) *Error {
	e := &Error{Status: res.StatusCode, Message: http.StatusText(res.StatusCode)}
	if json.Unmarshal(body, e) != nil {
		e.Message += foreign(body)
	}
	if to := res.Header.Get("Location"); res.StatusCode < http.StatusBadRequest && to != "" {
		e.Message += fmt.Sprintf("; not followed to %q", to)
	}
	e.RetryAfter, e.hasRetry = retryAfter(res.Header)
	return e
}

// foreign returns the first line of a body that is not JobWeaver's, if the line is short and the body is not an HTML
// page.
func foreign(body []byte) string {
	text, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	if text == "" || len(text) > 200 || text[0] == '<' {
		return ""
	}
	return ": " + text
}

// Unreached reports whether an error means that the gateway was not reached or cannot answer now. Then it is not known
// whether it has carried out the request.
func Unreached(err error) bool {
	var refused *Error
	if errors.As(err, &refused) {
		return slices.Contains([]int{
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		}, refused.Status)
	}
	var way *url.Error
	return errors.As(err, &way) && !errors.Is(err, context.Canceled)
}

// EndedError is a job that has ended FAILED or CANCELLED.
type EndedError struct{ Job *Job }

// Error returns a text with the job, its end, and the reason.
func (e *EndedError) Error() string {
	text := fmt.Sprintf("job %s is %s", e.Job.JobID, e.Job.Status)
	if e.Job.LastError != nil {
		text += ": " + e.Job.LastError.ErrorCode + ": " + e.Job.LastError.Message
	}
	return text
}
