package edge

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

// MaxWait is the longest time that a response is held.
const MaxWait = time.Minute

// waitForm is the contract's pattern of ?wait=: up to a minute, in seconds if it has no unit.
var waitForm = regexp.MustCompile(`^(([1-5]?[0-9]([.][0-9]{1,9})?|60)s?|([1-5]?[0-9]{1,4}|60000)ms|1m(0s)?)$`)

// Duration returns the parameter that limits how long a response is held; 0 if it is absent.
func (q *Query) Duration(name string) time.Duration {
	value := q.One(name)
	if value == "" {
		return 0
	}
	if !waitForm.MatchString(value) {
		q.Bad(name, "must be a duration up to 60s, as 30s, 1.5s or 500ms")
		return 0
	}
	if strings.Trim(value, "0123456789.") == "" {
		value += "s"
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		q.Bad(name, "must be a duration up to 60s: %v", err)
	}
	return d
}

// Wait is how long the response to a request may be held, by ?wait= or else by Prefer: wait=seconds (RFC 7240). As the
// RFC requires, a preference that is not a number of seconds is ignored, and one above MaxWait is shortened.
type Wait struct {
	time.Duration
	// Preferred is true if the header Prefer gave the duration.
	Preferred bool
}

// WaitOf reads the wait of a request.
func WaitOf(c *gin.Context, q *Query) Wait {
	if q.Values.Has("wait") {
		return Wait{Duration: q.Duration("wait")}
	}
	value, _ := Preference(c.Request.Header, "wait")
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return Wait{}
	}
	return Wait{Duration: min(time.Duration(seconds)*time.Second, MaxWait), Preferred: true}
}

// Confirm adds the header that confirms a preference to the response.
func (w Wait) Confirm(c *gin.Context) {
	if w.Preferred {
		c.Header("Preference-Applied", "wait="+strconv.Itoa(int(w.Seconds())))
	}
}

// Preference finds a preference in the header Prefer, and its value if it has one.
func Preference(header http.Header, name string) (value string, found bool) {
	if len(header["Prefer"]) == 0 {
		return "", false
	}
	for preference := range strings.SplitSeq(strings.Join(header.Values("Prefer"), ","), ",") {
		preference, _, _ = strings.Cut(preference, ";")
		token, value, _ := strings.Cut(preference, "=")
		if strings.EqualFold(strings.TrimSpace(token), name) {
			return strings.Trim(strings.TrimSpace(value), `"`), true
		}
	}
	return "", false
}
