package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/callbackstore"
	"github.com/jobweaver/jobweaver/shared/apidb/deliverystore"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apidb/rejectedstore"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// errorBody is the body of every answer that is no success.
type errorBody struct {
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
	errorBody
}

// answerError answers in the form that the client accepts.
func answerError(c *gin.Context, body errorBody) {
	if !strings.Contains(strings.Join(c.Request.Header["Accept"], ","), problemType) {
		c.AbortWithStatusJSON(body.Status, body)
		return
	}
	c.Header("Content-Type", problemType)
	c.AbortWithStatusJSON(body.Status, problemBody{
		Type: "about:blank", Title: http.StatusText(body.Status), Detail: body.Message,
		Instance: "urn:uuid:" + body.TraceID.String(), errorBody: body,
	})
}

// ofJob says which job an error is about.
type ofJob struct {
	id uuid.UUID
	error
}

func (e ofJob) Unwrap() error { return e.error }

// fail answers a request with an error, and logs it when it is ours.
func (f *Function) fail(c *gin.Context, err error) {
	body := newErrorBody(c, err)
	var slow slowDown
	switch {
	case body.ErrorCode == apierror.Unauthorized:
		c.Header("WWW-Authenticate", "Bearer")
	case errors.As(err, &slow):
		c.Header("Retry-After", slow.seconds())
	case body.Status == http.StatusTooManyRequests:
		c.Header("Retry-After", "1")
	case body.Status == http.StatusServiceUnavailable:
		c.Header("Retry-After", "1")
		if !errors.Is(err, context.Canceled) {
			f.unserved.Note(c.Request.Context(), err, failureFields(c, body)...)
		}
	case body.Status >= 500:
		telemetry.Logger(c.Request.Context()).With("error", err).Error("cannot serve request", failureFields(c, body)...)
	}
	answer := func() { answerError(c, body) }
	if body.Status == http.StatusRequestTimeout { // nothing came for long enough
		answer()
		return
	}
	lingering(c, answer)
}

func failureFields(c *gin.Context, body errorBody) []any {
	fields := []any{"errorCode", body.ErrorCode, "method", c.Request.Method, "path", c.FullPath(),
		telemetry.FieldTraceID, body.TraceID}
	if body.JobID != nil {
		fields = append(fields, telemetry.FieldJobID, *body.JobID)
	}
	return fields
}

func newErrorBody(c *gin.Context, err error) errorBody {
	public := public(err)
	body := errorBody{
		Timestamp: time.Now().UTC(), Status: public.Status(), ErrorCode: public.Code, Message: public.Message,
		TraceID: traceID(c), Details: jobview.List(public.Details),
	}
	if about := (ofJob{}); errors.As(err, &about) {
		body.JobID = &about.id
	}
	return body
}

// public is what a client is told of an error; the one place that knows.
func public(err error) *apierror.Error {
	var known *apierror.Error
	var refused *apidb.RefusedError
	var late *callbackstore.RefusedError
	var slow slowDown
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
	case errors.Is(err, apidb.ErrNoOperation):
		return apierror.New(apierror.NotFound, "there is no such operation")
	case errors.Is(err, rejectedstore.ErrNone):
		return apierror.New(apierror.NotFound, "there is no such rejected record")
	case errors.Is(err, keystore.ErrNoKey):
		return apierror.New(apierror.NotFound, "there is no such API key")
	case errors.Is(err, keystore.ErrKeyOver):
		return apierror.New(apierror.InvalidStateTransition, "%s", keystore.ErrKeyOver)
	case errors.Is(err, keystore.ErrTooMany):
		return apierror.New(apierror.InvalidJobRequest, "%s", keystore.ErrTooMany)
	case errors.Is(err, apidb.ErrNoControl):
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
	case errors.Is(err, apidb.ErrTooManyControls):
		return apierror.New(apierror.InvalidJobRequest, "%s", apidb.ErrTooManyControls)
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

// recovering answers a panic with 500 and logs it with its stack.
func recovering(c *gin.Context) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(p) // net/http's own way to end a connection
		}
		telemetry.Logger(c.Request.Context()).Error("request panicked", "panic", fmt.Sprint(p), "method", c.Request.Method,
			"path", c.FullPath(), telemetry.FieldTraceID, traceID(c), "stack", string(debug.Stack()))
		if c.Writer.Written() {
			c.Abort()
			return
		}
		body := newErrorBody(c, apierror.New(apierror.Internal, "the server is at fault; its log has the trace id"))
		answerError(c, body)
	}()
	c.Next()
}

// sometimes says yes at most once a second: while a server is away, each request fails in the same way.
type sometimes struct{ last atomic.Int64 }

func (s *sometimes) now() bool {
	last, now := s.last.Load(), time.Now().UnixNano()
	return now-last >= int64(time.Second) && s.last.CompareAndSwap(last, now)
}
