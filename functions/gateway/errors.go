package gateway

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// fail answers a request with an error, and logs it if it is an error of the installation or refuses its sender.
func (f *Function) fail(c *gin.Context, err error) {
	body := edge.NewErrorBody(c, err)
	f.refusals.Note(c, body)
	var slow edge.SlowDownError
	switch {
	case body.ErrorCode == apierror.Unauthorized:
		c.Header("WWW-Authenticate", "Bearer")
	case errors.As(err, &slow):
		c.Header("Retry-After", slow.Seconds())
	case body.Status == http.StatusTooManyRequests:
		c.Header("Retry-After", "1")
	case body.Status == http.StatusServiceUnavailable:
		c.Header("Retry-After", "1")
		if !errors.Is(err, context.Canceled) {
			f.unserved.Note(c.Request.Context(), err, failureFields(c, body)...)
		}
	case body.Status >= 500:
		ctx := c.Request.Context()
		telemetry.Logger(ctx).With("error", err).ErrorContext(ctx, "cannot serve request", failureFields(c, body)...)
	}
	answer := func() { edge.AnswerError(c, body) }
	if body.Status == http.StatusRequestTimeout { // the body did not arrive in time
		answer()
		return
	}
	edge.Linger(c, answer)
}

func failureFields(c *gin.Context, body edge.ErrorBody) []any {
	fields := []any{"errorCode", body.ErrorCode, "method", c.Request.Method, "path", c.FullPath(),
		telemetry.FieldTraceID, body.TraceID}
	if body.JobID != nil {
		fields = append(fields, telemetry.FieldJobID, *body.JobID)
	}
	return fields
}
