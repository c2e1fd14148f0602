package edge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// ErrorBody is the body of every error response.
type ErrorBody struct {
	Timestamp time.Time         `json:"timestamp"`
	Status    int               `json:"status"`
	ErrorCode apierror.Code     `json:"errorCode"`
	Message   string            `json:"message"`
	JobID     *uuid.UUID        `json:"jobId"`
	TraceID   uuid.UUID         `json:"traceId"`
	Details   []apierror.Detail `json:"details"`
}

const problemType = "application/problem+json"

// problemBody is an error in the form of RFC 9457, for clients that accept it, and also has the members of ErrorBody.
type problemBody struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Detail   string `json:"detail"`
	Instance string `json:"instance"`
	ErrorBody
}

// AnswerError answers in the form that the client accepts.
func AnswerError(c *gin.Context, body ErrorBody) {
	if !strings.Contains(strings.Join(c.Request.Header["Accept"], ","), problemType) {
		c.AbortWithStatusJSON(body.Status, body)
		return
	}
	c.Header("Content-Type", problemType)
	c.AbortWithStatusJSON(body.Status, problemBody{
		Type: "about:blank", Title: http.StatusText(body.Status), Detail: body.Message,
		Instance: "urn:uuid:" + body.TraceID.String(), ErrorBody: body,
	})
}

// aboutJob is an error about one job.
type aboutJob struct {
	id  uuid.UUID
	err error
}

// OfJob adds the job to an error.
func OfJob(id uuid.UUID, err error) error { return aboutJob{id, err} }

func (e aboutJob) Error() string { return e.err.Error() }

func (e aboutJob) Unwrap() error { return e.err }

// NewErrorBody returns the body of the answer to a request that fails with err.
func NewErrorBody(c *gin.Context, err error) ErrorBody {
	public := Public(err)
	body := ErrorBody{
		Timestamp: time.Now().UTC(), Status: public.Status(), ErrorCode: public.Code, Message: public.Message,
		TraceID: TraceID(c), Details: jobview.List(public.Details),
	}
	if about := (aboutJob{}); errors.As(err, &about) {
		body.JobID = &about.id
	}
	return body
}

// Public returns the part of an error that a client may see. An error that refuses a request has its own response; any
// other is an error of the installation.
func Public(err error) *apierror.Error {
	var known *apierror.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, sealing.ErrNoKey), errors.Is(err, sealing.ErrAltered):
		return apierror.New(apierror.Sealed, "a sealed value that the request needs cannot be opened")
	case errors.Is(err, jobevent.ErrInvalid):
		return apierror.New(apierror.InvalidJobRequest, "the database refuses a value of the request")
	case pgpool.IsUnavailable(err):
		return apierror.New(apierror.Unavailable, "%s", pgpool.Outage(err))
	case errors.Is(err, context.Canceled):
		return apierror.New(apierror.Unavailable, "the database cannot be reached")
	}
	return apierror.New(apierror.Internal, "the server is at fault; its log has the trace id")
}

// Recover answers a panic with 500 and logs it with its stack.
func Recover(c *gin.Context) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(p) // net/http's own way to abort a connection
		}
		ctx := c.Request.Context()
		telemetry.Logger(ctx).ErrorContext(ctx, "request panicked",
			"panic", fmt.Sprint(p), "method", c.Request.Method, "path", c.FullPath(),
			telemetry.FieldTraceID, TraceID(c), "stack", string(debug.Stack()))
		if c.Writer.Written() {
			c.Abort()
			return
		}
		body := NewErrorBody(c, apierror.New(apierror.Internal, "the server is at fault; its log has the trace id"))
		AnswerError(c, body)
	}()
	c.Next()
}

// Invalid refuses a request because of the value at path.
func Invalid(path, message string) error {
	return apierror.Invalid("request", path, message)
}
