package edge

import (
	"encoding/hex"
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
)

// TraceKey is where the context of a request has its trace id.
const TraceKey = "traceId"

// TraceID is the trace id of a request.
func TraceID(c *gin.Context) uuid.UUID {
	id, _ := c.MustGet(TraceKey).(uuid.UUID)
	return id
}

// traceParent is W3C's form; a version that comes later may add to it.
var traceParent = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$`)

// TraceOfParent reads the trace id of a traceparent; ok is false for one that W3C calls invalid.
func TraceOfParent(header string) (id uuid.UUID, ok bool) {
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

// CheckTraceURL refuses a TRACE_URL that makes no link: the dashboard opens what it gives as an address.
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
