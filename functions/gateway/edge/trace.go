package edge

import (
	"errors"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
)

// TraceKey is the key of the trace id in the context of a request.
const TraceKey = "traceId"

// TraceID returns the trace id of a request.
func TraceID(c *gin.Context) uuid.UUID {
	id, _ := c.MustGet(TraceKey).(uuid.UUID)
	return id
}

// traceIDPlace is replaced by the trace id in TRACE_URL.
const traceIDPlace = "{traceId}"

// CheckTraceURL refuses a TRACE_URL that does not make a link, because the dashboard opens it as an address.
func CheckTraceURL(text string) error {
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
