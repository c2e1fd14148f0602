// Package ingress stands for a Knative Broker in the bench: it accepts events over HTTP and delivers each to the
// Triggers of knative/base whose filters it passes. A subscriber is a KafkaSink, or a function that is called over
// HTTP. Accepted events are in memory only, so it costs less than Knative's Broker, which writes them to Kafka.
package ingress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/jobweaver/jobweaver/shared/httpevent"
)

const (
	// atOnce is the containerConcurrency of the functions in knative/base.
	atOnce = 16
	// tries, pause and timeout are the delivery of the Triggers in knative/base.
	tries   = 11
	pause   = 500 * time.Millisecond
	timeout = 45 * time.Second
)

// Broker is the ingress, and delivers the events that it accepted.
type Broker struct {
	triggers []*trigger
	http     *http.Client
	kafka    *kgo.Client
	work     sync.WaitGroup
	ctx      context.Context // of all deliveries
	end      context.CancelFunc

	mu   sync.Mutex
	lost []error // events that a Trigger could not deliver
}

// Config has the addresses of the subscribers.
type Config struct {
	Manifests string            // folder of knative/base
	Functions map[string]string // the URL of each running Knative Service; Triggers of other services are left out
	Brokers   []string          // of the KafkaSinks
}

// New reads the Triggers.
func New(cfg Config) (*Broker, error) {
	b := &Broker{http: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 2 * atOnce}, Timeout: timeout,
	}}
	b.ctx, b.end = context.WithCancel(context.Background())
	var err error
	if b.triggers, err = readTriggers(cfg); err != nil {
		return nil, err
	}
	b.kafka, err = kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...), kgo.ProducerBatchCompression(kgo.NoCompression()))
	return b, err
}

// ServeHTTP accepts one event in binary mode.
func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, t := range b.triggers {
		if t.passes(r.Header) {
			b.work.Go(func() { b.deliver(t, r.Header, body) })
		}
	}
	w.WriteHeader(http.StatusAccepted)
}

// Close ends the deliveries under way, since the functions that would receive the last heartbeats have stopped. It
// returns an error if a delivery failed for good before.
func (b *Broker) Close() error {
	b.end()
	b.work.Wait()
	b.kafka.Close()
	b.http.CloseIdleConnections()
	return errors.Join(b.lost...)
}

func (b *Broker) deliver(t *trigger, header http.Header, body []byte) {
	t.busy <- struct{}{}
	defer func() { <-t.busy }()
	send := b.post
	if t.topic != "" {
		send = b.produce
	}
	var err error
	for n := range tries {
		if err = send(t, header, body); err == nil {
			return
		}
		select {
		case <-time.After(pause << n):
		case <-b.ctx.Done():
			return
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost = append(b.lost, fmt.Errorf("trigger %s: %s: %w", t.name, header.Get("Ce-Type"), err))
}

func (b *Broker) post(t *trigger, header http.Header, body []byte) error {
	req, err := http.NewRequestWithContext(b.ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, values := range header {
		if isEvent(name) {
			req.Header[name] = values
		}
	}
	res, err := b.http.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s", res.Status, text)
	}
	return nil
}

// produce writes the event to the topic of a KafkaSink, in binary mode.
func (b *Broker) produce(t *trigger, header http.Header, body []byte) error {
	e, err := httpevent.Binary(header, body)
	if err != nil {
		return err
	}
	return b.kafka.ProduceSync(b.ctx, recordOf(e, t.topic)).FirstErr()
}
