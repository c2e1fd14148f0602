package funchost

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
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// sinkAtOnce is how many requests are under way at once. A sink that takes 10 s an event so still takes ten a second.
	sinkAtOnce   = 100
	sinkPatience = 30 * time.Second
	// sinkLast is how long close waits for requests that are under way and whose caller has gone.
	sinkLast = 2 * time.Second
	sinkWait = 5 * time.Minute // the longest Retry-After that counts

	// sinkTries is how often one try sends what the sink would not take just then, and sinkPause the longest pause
	// between: a Broker's ingress answers 503 in passing, and who says a thing once has no more than this. Kafka's
	// producer does the same.
	sinkTries = 4
	sinkPause = time.Second
)

// sink publishes events over HTTP, one a request in binary mode. It tries again what Knative's own senders
// try again; a 3xx or any other 4xx is a refusal for good, logged and counted. The sweepers publish the event
// again, and it gets through once the sink is put right.
//
// A request does not end with its caller's context, only after sinkPatience: a sink that is slow may be about to
// take the event, and an event whose request was broken off is published again (knative A1).
type sink struct {
	url        string
	extensions map[string]string // of K_CE_OVERRIDES
	client     *http.Client
	meter      telemetry.Meter

	places   chan struct{} // has one value a request that is under way
	requests sync.WaitGroup
	ctx      context.Context // of all requests
	end      context.CancelFunc
}

func newSink(cfg Config, meter telemetry.Meter) (*sink, error) {
	target, err := url.Parse(cfg.Sink)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return nil, fmt.Errorf("K_SINK: %q is no http or https address", cfg.Sink)
	}
	var overrides struct {
		Extensions map[string]string `json:"extensions"`
	}
	if cfg.CEOverrides != "" {
		if err := json.Unmarshal([]byte(cfg.CEOverrides), &overrides); err != nil {
			return nil, fmt.Errorf(`K_CE_OVERRIDES: not like {"extensions": {"name": "value"}}: %w`, err)
		}
	}
	for name := range overrides.Extensions {
		if !event.IsExtensionNameValid(name) {
			return nil, fmt.Errorf("K_CE_OVERRIDES: %q is no name for an extension", name)
		}
	}
	trust, err := cfg.sinkTrust()
	if err != nil {
		return nil, err
	}
	s := &sink{url: cfg.Sink, extensions: overrides.Extensions, meter: meter, client: &http.Client{
		Transport:     trust.Transport(func(t *http.Transport) { t.MaxIdleConnsPerHost = sinkAtOnce }),
		Timeout:       sinkPatience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, places: make(chan struct{}, sinkAtOnce)}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s, nil
}

func (s *sink) close() {
	last := time.AfterFunc(sinkLast, s.end)
	s.requests.Wait()
	last.Stop()
	s.end()
	s.client.CloseIdleConnections()
}

// unposted is the error of a try after which only some events have to be posted again.
type unposted struct {
	events []event.Event
	after  time.Duration // what the sink asked us to wait
	err    error
}

func (u *unposted) Error() string { return u.err.Error() }
func (u *unposted) Unwrap() error { return u.err }

// send posts the events, and again those that the sink would not take just then, a few times within ctx.
func (s *sink) send(ctx context.Context, events []event.Event) (said []event.Event, err error) {
	var wait backoff
	for try := 1; ; try++ {
		taken, err := s.sendOnce(ctx, events)
		said = append(said, taken...)
		left := (*unposted)(nil)
		if !errors.As(err, &left) || try == sinkTries {
			return said, err
		}
		next := max(wait.next(), left.after)
		if end, bounded := ctx.Deadline(); next > sinkPause || bounded && time.Until(end) < next || !pause(ctx, next) {
			return said, err
		}
		events = left.events
	}
}

// sendOnce posts each event once. When the sink is away or overloaded it leaves the rest for the next try.
func (s *sink) sendOnce(ctx context.Context, events []event.Event) (said []event.Event, err error) {
	failures := make([]error, len(events))
	var stop atomic.Bool
	var group errgroup.Group
	group.SetLimit(sinkAtOnce)
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

	var left unposted
	for i, err := range failures {
		switch {
		case err == nil:
			said = append(said, events[i])
			continue
		case errors.Is(err, errRefused):
			continue
		case left.err == nil || errors.Is(left.err, errNotTried):
			left.err = err
		}
		left.events = append(left.events, events[i])
		if refusal := (*answer)(nil); errors.As(err, &refusal) {
			left.after = max(left.after, refusal.after)
		}
	}
	if len(left.events) == 0 {
		return said, nil
	}
	return said, &left
}

var (
	errNotTried = errors.New("sink is away")
	errRefused  = errors.New("sink never takes it")
)

// answer is one that asks for another try.
type answer struct {
	status int
	after  time.Duration
}

func (a *answer) Error() string { return "sink answered " + strconv.Itoa(a.status) }

// isOverloaded: the next request would meet the same. Another bad answer may be one event's fault.
func isOverloaded(err error) bool {
	refusal := (*answer)(nil)
	if !errors.As(err, &refusal) {
		return err != nil && !errors.Is(err, errRefused)
	}
	return refusal.status == http.StatusTooManyRequests || refusal.status == http.StatusServiceUnavailable
}

// post returns nil when the sink took the event, errRefused when it never will. After the end of ctx it returns, and
// the request goes on.
func (s *sink) post(ctx context.Context, e event.Event) error {
	select {
	case s.places <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for a place at the sink: %w", ctx.Err())
	}
	answered := make(chan error, 1)
	e = e.Clone() // the caller may change its own after ctx has ended
	s.requests.Go(func() {
		defer func() { <-s.places }()
		answered <- s.request(context.WithoutCancel(ctx), e)
	})
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for the sink's answer: %w", ctx.Err())
	}
}

// request is one request, of an event that is its own. It ends with s, and not with ctx.
func (s *sink) request(ctx context.Context, e event.Event) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	for name, value := range s.extensions {
		e.SetExtension(name, value)
	}
	req, err := cehttp.NewHTTPRequestFromEvent(ctx, s.url, e)
	if err != nil {
		return s.refused(ctx, e, err)
	}
	escapeHeaders(req.Header)
	req.Header.Set("User-Agent", "jobweaver/"+Version)
	if parent := jobevent.Extension(e, jobevent.ExtTraceParent); parent != "" && telemetry.TracingOf(ctx) != nil {
		req.Header.Set("Traceparent", parent)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20)) // to keep the connection
	_ = res.Body.Close()
	switch {
	case res.StatusCode/100 == 2:
		return nil
	case isRetried(res.StatusCode):
		return &answer{status: res.StatusCode, after: retryAfter(res.Header.Get("Retry-After"))}
	}
	return s.refused(ctx, e, &answer{status: res.StatusCode})
}

func (s *sink) refused(ctx context.Context, e event.Event, err error) error {
	s.meter.Refused(jobevent.ItemOf(e))
	telemetry.Logger(ctx).ErrorContext(ctx, "event refused by the sink is dropped, and with it its job's status",
		append(telemetry.FieldsOf(jobevent.ItemOf(e)), "error", err)...)
	return errRefused
}

// isRetried are the answers after which Knative's senders try again.
func isRetried(status int) bool {
	return status >= 500 || slices.Contains([]int{
		http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests,
	}, status)
}

// retryAfter reads seconds or a date.
func retryAfter(header string) time.Duration {
	wait := time.Duration(0)
	if seconds, err := strconv.Atoi(header); err == nil {
		wait = time.Duration(min(seconds, int(sinkWait/time.Second))) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		wait = time.Until(at)
	}
	return min(max(wait, 0), sinkWait)
}
