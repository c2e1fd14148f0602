package gateway

import (
	"encoding/hex"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	traceHeader = "X-Trace-Id"
	traceKey    = "traceId"
	badTraceKey = "badTrace"
)

// checkTrace refuses an X-Trace-Id that cannot be kept. To replace it in silence would have a client look for its jobs
// by an id that none of them has; to keep any text needs another type of column in three databases.
func (f *Function) checkTrace(c *gin.Context) {
	if _, bad := c.Get(badTraceKey); bad {
		f.fail(c, wrong(traceHeader, "must be a UUID, as 0af76519-16cd-43dd-8448-eb211c80319c"))
	}
}

// tracing gives each request a trace id, and each answer the same: the one of a valid traceparent, else the UUID in
// X-Trace-Id, else a new one. By the time in a new one the list finds its jobs: they need no entry in an index.
func (f *Function) tracing(c *gin.Context) {
	id, ok := traceOfParent(c.GetHeader("Traceparent"))
	if given := c.GetHeader(traceHeader); !ok && given != "" {
		if id, ok = parseID(given); !ok || id == uuid.Nil {
			ok = false
			c.Set(badTraceKey, true)
		}
	}
	if !ok {
		id = f.store.NewID()
	}
	c.Set(traceKey, id)
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

// untraced are asked for by machines, again and again, or last for hours.
var untraced = []string{"/api/health", "/metrics", streamPath}

func traceID(c *gin.Context) uuid.UUID {
	id, _ := c.MustGet(traceKey).(uuid.UUID)
	return id
}

// traceParent is W3C's form; a version that comes later may add to it.
var traceParent = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$`)

// traceOfParent reads the trace id of a traceparent; ok is false for one that W3C calls invalid.
func traceOfParent(header string) (id uuid.UUID, ok bool) {
	m := traceParent.FindStringSubmatch(header)
	if m == nil || m[1] == "ff" || m[1] == "00" && m[4] != "" || m[3] == "0000000000000000" {
		return uuid.Nil, false
	}
	if _, err := hex.Decode(id[:], []byte(m[2])); err != nil {
		return uuid.Nil, false
	}
	return id, id != uuid.Nil
}

// traceIDPlace stands in TRACE_URL where the trace id goes.
const traceIDPlace = "{traceId}"

// checkTraceURL refuses a TRACE_URL that makes no link: the dashboard opens what it gives as an address.
func checkTraceURL(text string) error {
	if text == "" {
		return nil
	}
	if !strings.Contains(text, traceIDPlace) {
		return errors.New("has no {traceId}")
	}
	u, err := url.Parse(strings.ReplaceAll(text, traceIDPlace, strings.Repeat("0", 32)))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return errors.New("is not an http or https URL without a user")
	}
	return nil
}
