package gateway

import (
	"slices"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	traceHeader = "X-Trace-Id"
	badTraceKey = "badTrace"
)

// checkTrace refuses an X-Trace-Id that is not a UUID. If it were replaced silently, the client would search for its
// jobs by an id that none of them has; to store any text would need another type of column in three databases.
func (f *Function) checkTrace(c *gin.Context) {
	if _, bad := c.Get(badTraceKey); bad {
		f.fail(c, edge.Invalid(traceHeader, "must be a UUID, as 0af76519-16cd-43dd-8448-eb211c80319c"))
	}
}

// tracing gives each request a trace id, and returns it in each response: the one in a valid traceparent, or else the
// UUID in X-Trace-Id, or else a new one. A new id contains the time, by which the list finds its jobs without an index
// entry.
func (f *Function) tracing(c *gin.Context) {
	id, ok := telemetry.TraceID(c.GetHeader("Traceparent"))
	if given := c.GetHeader(traceHeader); !ok && given != "" {
		if id, ok = edge.ParseID(given); !ok || id == uuid.Nil {
			ok = false
			c.Set(badTraceKey, true)
		}
	}
	if !ok {
		id = f.store.NewID()
	}
	c.Set(edge.TraceKey, id)
	c.Header(traceHeader, id.String())
	spans := telemetry.TracingOf(c.Request.Context())
	if spans == nil || slices.Contains(untraced, c.FullPath()) {
		return
	}
	var span *telemetry.Span
	c.Request, span = spans.Serve(c.Request, id, c.FullPath())
	defer func() { span.Answered(c.Writer.Status()) }()
	c.Next()
}

// untraced are routes that machines call again and again, or whose requests last for hours.
var untraced = []string{"/api/health", "/metrics", streamPath}
