package outbound

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter bounds what an answer may ask for.
const maxRetryAfter = 365 * 24 * time.Hour

// Retryable says whether a call that was answered so may go better another time.
func Retryable(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= http.StatusInternalServerError
}

// retryAfter is how long an answer of 429 or 503 asks to be left alone: a number of seconds or an
// instant, by the clock of who says it where it tells the time. 0: it does not ask, or for the past.
func retryAfter(answer *http.Response, now time.Time) time.Duration {
	if answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	text := answer.Header.Get("Retry-After")
	seconds, err := strconv.ParseUint(text, 10, 64) // the largest there is, where it is out of range
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
