package outbound

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter bounds the Retry-After of an answer.
const maxRetryAfter = 365 * 24 * time.Hour

// Retryable reports whether a retry of a call with this status may succeed.
func Retryable(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= http.StatusInternalServerError
}

// retryAfter reads the Retry-After of a 429 or 503: a number of seconds, or an instant by the answer's
// Date, if it has one. It returns 0 if there is none, or it has passed.
func retryAfter(answer *http.Response, now time.Time) time.Duration {
	if answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	text := answer.Header.Get("Retry-After")
	seconds, err := strconv.ParseUint(text, 10, 64) // out of range: the largest number
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		now = date
	}
	return min(max(0, at.Sub(now)), maxRetryAfter)
}
