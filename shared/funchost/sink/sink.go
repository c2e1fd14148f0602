// Package sink publishes events over HTTP to the URL of K_SINK.
package sink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

const (
	// MaxRequests is how many requests are under way at once. So even a sink that takes 10 s for an event accepts ten a
	// second.
	MaxRequests    = 100
	requestTimeout = 30 * time.Second
	// closeTimeout is how long Close waits for requests whose caller has gone.
	closeTimeout  = 2 * time.Second
	maxRetryAfter = 5 * time.Minute

	// MaxTries is how often one Send sends an event that the sink does not accept for the moment, and maxPause the longest
	// pause between: a Broker's ingress sometimes answers 503, and a caller may publish only once. Kafka's producer
	// retries, too.
	MaxTries = 4
	maxPause = time.Second

	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// Config has the address of a sink and the settings for it.
type Config struct {
	URL       string           // K_SINK
	Overrides string           // K_CE_OVERRIDES
	Trust     *tlsfiles.Client // the certificates of both sides
	UserAgent string
	Meter     telemetry.Meter
}

// Sink publishes events over HTTP, one in each request in binary mode. It retries after the same statuses as Knative's
// own senders. A 3xx or any other 4xx is a permanent refusal, which it logs and counts. The sweepers republish such an
// event, so that it gets through once the sink is repaired.
//
// A request does not end with its caller's context, only after requestTimeout: a slow sink may be about to accept the
// event, and an event whose request was aborted would be published again.
type Sink struct {
	cfg        Config
	extensions map[string]string // of K_CE_OVERRIDES
	client     *http.Client

	slots    chan struct{} // has one value for each request that is under way
	requests sync.WaitGroup
	ctx      context.Context // of all requests
	end      context.CancelFunc
}

// New checks the configuration; the first Send connects.
func New(cfg Config) (*Sink, error) {
	target, err := url.Parse(cfg.URL)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return nil, fmt.Errorf("K_SINK: %q is not an http or https address", cfg.URL)
	}
	var overrides struct {
		Extensions map[string]string `json:"extensions"`
	}
	if cfg.Overrides != "" {
		if err := json.Unmarshal([]byte(cfg.Overrides), &overrides); err != nil {
			return nil, fmt.Errorf(`K_CE_OVERRIDES: not like {"extensions": {"name": "value"}}: %w`, err)
		}
	}
	for name := range overrides.Extensions {
		if !event.IsExtensionNameValid(name) {
			return nil, fmt.Errorf("K_CE_OVERRIDES: %q is not an extension's name", name)
		}
	}
	s := &Sink{cfg: cfg, extensions: overrides.Extensions, client: &http.Client{
		Transport:     cfg.Trust.Transport(func(t *http.Transport) { t.MaxIdleConnsPerHost = MaxRequests }),
		Timeout:       requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, slots: make(chan struct{}, MaxRequests)}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Close waits for requests under way, for some seconds.
func (s *Sink) Close() {
	last := time.AfterFunc(closeTimeout, s.end)
	s.requests.Wait()
	last.Stop()
	s.end()
	s.client.CloseIdleConnections()
}

// Unsent is an error of Send after which only some events have to be sent again.
type Unsent struct {
	Events []event.Event
	After  time.Duration // the pause that the sink asked for
	Err    error
}

func (u *Unsent) Error() string { return u.Err.Error() }
func (u *Unsent) Unwrap() error { return u.Err }

// Send posts the events, and retries those that the sink does not accept for the moment a few times within ctx. It
// returns the accepted events. Events that are neither accepted nor in an Unsent were refused for good.
func (s *Sink) Send(ctx context.Context, events []event.Event) (taken []event.Event, err error) {
	wait := retry.Backoff(firstPause, lastPause)
	for try := 1; ; try++ {
		now, err := s.sendOnce(ctx, events)
		taken = append(taken, now...)
		left := (*Unsent)(nil)
		if !errors.As(err, &left) || try == MaxTries {
			return taken, err
		}
		next := max(wait.NextBackOff(), left.After)
		if end, bounded := ctx.Deadline(); next > maxPause || bounded && time.Until(end) < next || !retry.Pause(ctx, next) {
			return taken, err
		}
		events = left.Events
	}
}

// sendOnce posts each event once. If the sink is unavailable or overloaded, it leaves the rest for the next try.
func (s *Sink) sendOnce(ctx context.Context, events []event.Event) (taken []event.Event, err error) {
	failures := make([]error, len(events))
	var stop atomic.Bool
	var group errgroup.Group
	group.SetLimit(MaxRequests)
	for i, e := range events {
		group.Go(func() error {
			if stop.Load() {
				failures[i] = errNotTried
			} else if failures[i] = s.post(ctx, e); isOverloaded(failures[i]) {
				stop.Store(true)
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in failures

	var left Unsent
	for i, err := range failures {
		switch {
		case err == nil:
			taken = append(taken, events[i])
			continue
		case errors.Is(err, ErrRefused):
			continue
		case left.Err == nil || errors.Is(left.Err, errNotTried):
			left.Err = err
		}
		left.Events = append(left.Events, events[i])
		if refusal := (*answer)(nil); errors.As(err, &refusal) {
			left.After = max(left.After, refusal.after)
		}
	}
	if len(left.Events) == 0 {
		return taken, nil
	}
	return taken, &left
}

// ErrRefused is the error of an event that the sink refused for good.
var ErrRefused = errors.New("the sink refused it")

var errNotTried = errors.New("the sink is unavailable")

// answer is an answer after which the event is sent again.
type answer struct {
	status int
	after  time.Duration
}

func (a *answer) Error() string { return "sink answered " + strconv.Itoa(a.status) }

// isOverloaded reports whether the next request would get the same error. Any other bad answer may be due to one event.
func isOverloaded(err error) bool {
	refusal := (*answer)(nil)
	if !errors.As(err, &refusal) {
		return err != nil && !errors.Is(err, ErrRefused)
	}
	return refusal.status == http.StatusTooManyRequests || refusal.status == http.StatusServiceUnavailable
}

// post returns nil if the sink accepted the event, and ErrRefused if it never will. When ctx ends, post returns and the
// request goes on.
func (s *Sink) post(ctx context.Context, e event.Event) error {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for a free request to the sink: %w", ctx.Err())
	}
	answered := make(chan error, 1)
	e = e.Clone() // the caller may change its event after ctx has ended
	s.requests.Go(func() {
		defer func() { <-s.slots }()
		answered <- s.request(context.WithoutCancel(ctx), e)
	})
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for the sink's answer: %w", ctx.Err())
	}
}

// request sends one request with an event that no other goroutine uses. It ends with s, not with ctx.
func (s *Sink) request(ctx context.Context, e event.Event) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	for name, value := range s.extensions {
		e.SetExtension(name, value)
	}
	req, err := cehttp.NewHTTPRequestFromEvent(ctx, s.cfg.URL, e)
	if err != nil {
		return s.refused(ctx, e, err)
	}
	escapeHeaders(req.Header)
	req.Header.Set("User-Agent", s.cfg.UserAgent)
	if parent := jobevent.Extension(e, jobevent.ExtTraceParent); parent != "" && telemetry.TracingOf(ctx) != nil {
		req.Header.Set("Traceparent", parent)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20)) // so that the connection can be reused
	_ = res.Body.Close()
	switch {
	case res.StatusCode/100 == 2:
		return nil
	case isRetried(res.StatusCode):
		return &answer{status: res.StatusCode, after: retryAfter(res.Header.Get("Retry-After"))}
	}
	return s.refused(ctx, e, &answer{status: res.StatusCode})
}

func (s *Sink) refused(ctx context.Context, e event.Event, err error) error {
	s.cfg.Meter.Refused(jobevent.ItemOf(e))
	telemetry.Logger(ctx).ErrorContext(ctx, "event refused by the sink is dropped, and with it its job's status",
		append(telemetry.FieldsOf(jobevent.ItemOf(e)), "error", err)...)
	return ErrRefused
}

// isRetried reports whether Knative's senders retry after this status.
func isRetried(status int) bool {
	return status >= 500 || slices.Contains([]int{
		http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests,
	}, status)
}

// retryAfter reads seconds or a date.
func retryAfter(header string) time.Duration {
	wait := time.Duration(0)
	if seconds, err := strconv.Atoi(header); err == nil {
		wait = time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		wait = time.Until(at)
	}
	return min(max(wait, 0), maxRetryAfter)
}
