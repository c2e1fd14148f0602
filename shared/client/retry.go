package client

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// How often and how long a client tries. After a 429 nothing was done, and the gateway reports when to try again.
const (
	defaultRetries = 4
	firstPause     = 100 * time.Millisecond
	longestPause   = 5 * time.Second
	patience       = 30 * time.Second // the most time in all for which a request waits for a limit
	maxLimited     = 10               // tries that a limit refuses
	longestAsk     = time.Hour        // the longest Retry-After that is followed
)

// do sends a request, and repeats it if that may help.
func (c *Client) do(ctx context.Context, r request, out any) (json.RawMessage, error) {
	r.repeatable = r.repeatable || slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPut}, r.method) ||
		hasKey(r.headers)
	end := time.Now().Add(patience)
	for limited, failed := 0, 0; ; {
		if err := c.pace.wait(ctx, r.jobs, end); err != nil {
			return nil, err
		}
		raw, err := c.once(ctx, r, out)
		var pause time.Duration
		var refused *Error
		switch {
		case err == nil:
			return raw, nil
		case errors.As(err, &refused) && refused.Status == http.StatusTooManyRequests:
			if limited++; !refused.hasRetry || limited == maxLimited || time.Until(end) < refused.RetryAfter {
				return raw, err
			}
			pause = refused.RetryAfter + jitter(refused.RetryAfter/10)
		case r.mayRepeat(err) && failed < c.retries:
			pause = max(backoff(failed), asked(err))
			failed++
			if pause > patience {
				return raw, err
			}
		default:
			return raw, err
		}
		if pauseFor(ctx, pause) != nil { // the request's error is more useful than that of the ended context
			return raw, err
		}
	}
}

// mayRepeat reports whether a failed request may be sent again.
func (r *request) mayRepeat(err error) bool {
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusRequestTimeout {
		return true // the gateway has not even read it
	}
	if !Unreached(err) {
		return false
	}
	var dial *net.OpError
	return r.repeatable || errors.As(err, &dial) && dial.Op == "dial"
}

// hasKey reports whether headers have an Idempotency-Key.
func hasKey(headers []string) bool {
	for i := 0; i+1 < len(headers); i += 2 {
		if http.CanonicalHeaderKey(headers[i]) == idempotencyKey {
			return headers[i+1] != ""
		}
	}
	return false
}

// backoff returns the pause after the n-th failure, counted from 0. Each pause is twice the one before, and half of it
// is random, so that clients that failed together do not come back together.
func backoff(n int) time.Duration {
	d := min(firstPause<<min(n, 10), longestPause)
	return d/2 + jitter(d/2)
}

func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}

// asked returns how long the client should wait after a 502, 503 or 504.
func asked(err error) time.Duration {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.RetryAfter
	}
	return 0
}

// retryAfter reads Retry-After, in seconds. Without that header it returns the time from RateLimit for a policy that
// has nothing left.
func retryAfter(h http.Header) (time.Duration, bool) {
	if text := h.Get("Retry-After"); text != "" {
		seconds, err := strconv.Atoi(text)
		if err != nil || seconds < 0 {
			return 0, false
		}
		return min(time.Duration(min(seconds, int(longestAsk/time.Second)))*time.Second, longestAsk), true
	}
	longest, found := time.Duration(0), false
	for _, left := range emptyPolicies(h) {
		longest, found = max(longest, left), true
	}
	return longest, found
}

// emptyPolicies reads RateLimit in the format of draft-ietf-httpapi-ratelimit-headers-11, such as "requests";r=0;t=2.
// It returns for each policy that has nothing left how long that lasts.
func emptyPolicies(h http.Header) map[string]time.Duration {
	var empty map[string]time.Duration
	for item := range strings.SplitSeq(strings.Join(h.Values("RateLimit"), ","), ",") {
		parts := strings.Split(item, ";")
		left, seconds := -1, -1
		for _, part := range parts[1:] {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			n, err := strconv.Atoi(value)
			switch {
			case err != nil || n < 0:
			case name == "r":
				left = n
			case name == "t":
				seconds = n
			}
		}
		if left == 0 && seconds >= 0 {
			if empty == nil {
				empty = map[string]time.Duration{}
			}
			empty[strings.Trim(strings.TrimSpace(parts[0]), `"`)] = time.Duration(min(seconds, 3600)) * time.Second
		}
	}
	return empty
}

// pace keeps the requests of a client within the limits that answers report.
type pace struct {
	mu   sync.Mutex
	next map[string]time.Time // by policy: when the next request is allowed
}

const policyOfJobs = "jobs"

func (p *pace) note(h http.Header, now time.Time) {
	empty := emptyPolicies(h)
	if len(empty) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = map[string]time.Time{}
	}
	for policy, left := range empty {
		p.next[policy] = now.Add(left)
	}
}

// wait returns when the limits allow a request. A request that would have to wait until after end is sent at once: its
// answer shows which limit it exceeds.
func (p *pace) wait(ctx context.Context, jobs bool, end time.Time) error {
	p.mu.Lock()
	var at time.Time
	for policy, next := range p.next {
		if (policy != policyOfJobs || jobs) && next.After(at) {
			at = next
		}
	}
	p.mu.Unlock()
	if left := time.Until(at); left > 0 && at.Before(end) {
		return pauseFor(ctx, left)
	}
	return nil
}

// pauseFor returns after d, or with an error as soon as ctx ends.
func pauseFor(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return context.DeadlineExceeded
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Held calls ask with the time that the gateway may hold the answer, and once more without it after a 504: that is the
// answer of a proxy which waits for less, although nothing is wrong.
func Held(wait time.Duration, ask func(wait time.Duration) error) error {
	err := ask(wait)
	var refused *Error
	if wait > 0 && errors.As(err, &refused) && refused.Status == http.StatusGatewayTimeout {
		return ask(0)
	}
	return err
}

// Through repeats ask until there is an answer, if the gateway has answered before: it may be restarting. lost is
// called once, with the error of the first failed try; nil: ask is not repeated.
func (c *Client) Through(ctx context.Context, lost func(error), ask func() error) error {
	end, pause := time.Now().Add(restartPatience), lookEvery
	for try := 1; ; try++ {
		err := ask()
		if lost == nil || !Unreached(err) || !c.answered.Load() || time.Now().After(end) {
			return err
		}
		if try == 1 {
			lost(err)
		}
		if err := pauseFor(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, maxPause)
	}
}

func query(values url.Values) string {
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}
