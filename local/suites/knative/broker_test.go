package knative

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/jobweaver/jobweaver/shared/httpevent"
	"github.com/jobweaver/jobweaver/shared/retry"
)

const (
	// recordMost is the maximum size of an event: the default of Kafka's topics and producers. Knative's ingress
	// answers 503 to a larger one, as if it were unavailable.
	recordMost = 1 << 20
	// atOnce is how many requests of a Trigger run concurrently: Knative's consumers poll fifty records.
	atOnce = 50

	extArrival = "knativearrivaltime"
)

// broker accepts events by HTTP and delivers each to the Triggers whose filters it passes, as Knative's Broker of
// class Kafka does. It keeps events in memory: a 202 is valid as long as the test runs.
type broker struct {
	triggers  []*trigger
	mishaps   *mishaps
	client    *http.Client
	namespace string
	ctx       context.Context      // of all deliveries
	slow      func() time.Duration // the delay of the ingress for an event; nil: none

	mu    sync.Mutex
	taken map[string]int // events by type
	notes []note         // failed deliveries
	work  sync.WaitGroup
}

// trigger is a Trigger with its resolved addresses.
type trigger struct {
	name       string
	of         object
	subscriber string
	deadLetter string // empty: none, and undeliverable events are dropped
	patience   patience
	seats      chan struct{}
}

// note is an event that a Trigger could not deliver.
type note struct {
	trigger, typ, id string
	why              string
	dropped          bool // the dead letter sink did not accept it either
}

// ServeHTTP is the ingress.
func (b *broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, err := readEvent(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if len(e.Data()) > recordMost {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if b.slow != nil && !retry.Pause(b.ctx, b.slow()) {
		return
	}
	if b.mishaps.happens(ingressAway) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	b.take(e)
	if b.mishaps.happens(ingressDeaf) {
		panic(http.ErrAbortHandler) // it has the event, and the sender gets no answer
	}
	w.WriteHeader(http.StatusAccepted)
}

// take begins the deliveries of an event.
func (b *broker) take(e event.Event) {
	e = e.Clone()
	e.SetExtension(extArrival, time.Now().UTC().Format(time.RFC3339Nano))
	b.mu.Lock()
	b.taken[e.Type()]++
	b.mu.Unlock()
	for _, t := range b.triggers {
		wanted, err := passes(t.of, e)
		if err != nil {
			b.noteDown(t, e, err, true)
		}
		if !wanted {
			continue
		}
		times := 1
		if b.mishaps.happens(twice) {
			times = 2
		}
		for range times {
			b.work.Go(func() { b.deliver(t, e) })
		}
	}
}

// deliver tries until the subscriber has accepted the event, or sends it to the dead letter sink.
func (b *broker) deliver(t *trigger, e event.Event) {
	if b.mishaps.happens(late) && !retry.Pause(b.ctx, b.mishaps.upTo(lateMost)) {
		return
	}
	select {
	case t.seats <- struct{}{}:
		defer func() { <-t.seats }()
	case <-b.ctx.Done():
		return
	}
	last := b.try(t.patience, func() error { return b.send(t.subscriber, e, t.patience.timeout, true) })
	if last == nil || b.ctx.Err() != nil {
		return
	}
	if t.deadLetter == "" {
		b.noteDown(t, e, last, true)
		return
	}
	dead := e.Clone()
	dead.SetExtension("knativeerrordest", t.subscriber)
	dead.SetExtension("knativeerrorcode", codeOf(last))
	dead.SetExtension("knativeerrordata", last.Error()[:min(len(last.Error()), 1024)])
	err := b.try(t.patience, func() error { return b.send(t.deadLetter, dead, t.patience.timeout, false) })
	b.noteDown(t, e, last, err != nil)
}

// try calls send until it succeeds, must not be retried, or has run as often as the Trigger allows.
func (b *broker) try(p patience, send func() error) error {
	for n := 1; ; n++ {
		err := send()
		if err == nil || !isAgain(err) || n > p.retry {
			return err
		}
		if !retry.Pause(b.ctx, p.before(n)) {
			return err
		}
	}
}

// send makes one request. Some requests to subscribers have a mishap.
func (b *broker) send(to string, e event.Event, timeout time.Duration, subscriber bool) error {
	ctx, cancel := context.WithTimeout(b.ctx, timeout)
	defer cancel()
	if subscriber && b.mishaps.happens(hungUp) {
		time.AfterFunc(b.mishaps.upTo(hungUpWithin), cancel)
	}
	req, err := cehttp.NewHTTPRequestFromEvent(ctx, to, e)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Prefer", "reply")
	req.Header.Set("Kn-Namespace", b.namespace)
	escapeHeaders(req.Header)
	res, err := b.client.Do(req)
	if err != nil {
		return &failure{status: 0, text: err.Error()}
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	_ = res.Body.Close()
	if err != nil {
		return &failure{status: 0, text: err.Error()}
	}
	if subscriber && b.mishaps.happens(deaf) {
		return &failure{status: 0, text: "the connection broke before the answer arrived"}
	}
	if res.StatusCode/100 != 2 {
		return &failure{status: res.StatusCode, text: string(body)}
	}
	return b.reply(res.Header, body)
}

// reply takes the event that an answer may contain. Knative treats any other body as an error.
func (b *broker) reply(header http.Header, body []byte) error {
	if len(body) == 0 && header.Get("Ce-Id") == "" {
		return nil
	}
	e, err := httpevent.Binary(header, body)
	if err != nil {
		return fmt.Errorf("answered with what is no event: %q", body)
	}
	b.take(e)
	return nil
}

func (b *broker) noteDown(t *trigger, e event.Event, why error, dropped bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes = append(b.notes, note{t.name, e.Type(), e.ID(), why.Error(), dropped})
}

// undelivered returns the notes, except those of the given events.
func (b *broker) undelivered(but ...string) []note {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.notes), func(n note) bool { return slices.Contains(but, n.id) })
}
