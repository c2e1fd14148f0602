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

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/callbackstore"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/apidb/deliverystore"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/apidb/rejectedstore"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// ErrorBody is the body of every answer that is no success.
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

// problemBody is an error as RFC 9457 has it, for clients that ask for one, with the members of errorBody beside.
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

// OfJob says of an error which job it is about.
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

// Public is what a client is told of an error; the one place that knows.
func Public(err error) *apierror.Error {
	var known *apierror.Error
	var refused *commandstore.RefusedError
	var late *callbackstore.RefusedError
	var slow SlowDownError
	var many *apidb.TooManyError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &many) && many.Ends:
		return apierror.New(apierror.RateLimited, "%s", many)
	case errors.As(err, &many):
		return apierror.New(apierror.InvalidStateTransition, "%s", many)
	case errors.As(err, &slow):
		return apierror.New(apierror.RateLimited, "%s", slow)
	case errors.Is(err, apidb.ErrCrowded):
		return apierror.New(apierror.RateLimited, "%s; retry in 1 s", apidb.ErrCrowded)
	case errors.Is(err, apidb.ErrNoJob):
		return apierror.New(apierror.JobNotFound, "there is no such job")
	case errors.Is(err, deliverystore.ErrNone):
		return apierror.New(apierror.NotFound, "there is no such delivery")
	case errors.Is(err, operationstore.ErrNoOperation):
		return apierror.New(apierror.NotFound, "there is no such operation")
	case errors.Is(err, rejectedstore.ErrNone):
		return apierror.New(apierror.NotFound, "there is no such rejected record")
	case errors.Is(err, keystore.ErrNoKey):
		return apierror.New(apierror.NotFound, "there is no such API key")
	case errors.Is(err, keystore.ErrKeyOver):
		return apierror.New(apierror.InvalidStateTransition, "%s", keystore.ErrKeyOver)
	case errors.Is(err, keystore.ErrTooMany):
		return apierror.New(apierror.InvalidJobRequest, "%s", keystore.ErrTooMany)
	case errors.Is(err, controlstore.ErrNoControl):
		return apierror.New(apierror.NotFound, "there is no such control")
	case errors.Is(err, schedulestore.ErrNone):
		return apierror.New(apierror.ScheduleNotFound, "there is no such schedule")
	case errors.Is(err, schedulestore.ErrExists):
		return apierror.New(apierror.ScheduleExists, "there is a schedule of this name already; PUT replaces it")
	case errors.Is(err, schedulestore.ErrSeveralOwners):
		return &apierror.Error{
			Code: apierror.InvalidJobRequest, Message: "invalid request: ownerId is required",
			Details: []apierror.Detail{{Path: "ownerId", Message: "is required: several owners have a schedule of this name"}},
		}
	case errors.As(err, &refused):
		return apierror.New(apierror.InvalidStateTransition, "%s", refused)
	case errors.As(err, &late) && late.Why == callbackstore.Expired:
		return apierror.New(apierror.CallbackExpired, "%s", late)
	case errors.As(err, &late):
		return apierror.New(apierror.InvalidStateTransition, "%s", late)
	case errors.Is(err, controlstore.ErrTooManyControls):
		return apierror.New(apierror.InvalidJobRequest, "%s", controlstore.ErrTooManyControls)
	case errors.Is(err, apidb.ErrConflict):
		return apierror.New(apierror.IdempotencyConflict, "%s", apidb.ErrConflict)
	case errors.Is(err, sealing.ErrNoKey), errors.Is(err, sealing.ErrAltered):
		return apierror.New(apierror.Sealed, "what it takes is sealed and does not open")
	case errors.Is(err, jobevent.ErrInvalid):
		return apierror.New(apierror.InvalidJobRequest, "the database refuses a value of the request")
	case pgpool.IsFull(err):
		return apierror.New(apierror.Unavailable, "the disk of the database is full")
	case pgpool.IsUnavailable(err), errors.Is(err, context.Canceled):
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
			panic(p) // net/http's own way to end a connection
		}
		telemetry.Logger(c.Request.Context()).Error("request panicked", "panic", fmt.Sprint(p), "method", c.Request.Method,
			"path", c.FullPath(), telemetry.FieldTraceID, TraceID(c), "stack", string(debug.Stack()))
		if c.Writer.Written() {
			c.Abort()
			return
		}
		body := NewErrorBody(c, apierror.New(apierror.Internal, "the server is at fault; its log has the trace id"))
		AnswerError(c, body)
	}()
	c.Next()
}

// Invalid refuses a request for what stands at path.
func Invalid(path, message string) error {
	return &apierror.Error{Code: apierror.InvalidJobRequest, Message: "invalid request: " + path + " " + message,
		Details: []apierror.Detail{{Path: path, Message: message}}}
}
