package knative

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
	"github.com/jobweaver/jobweaver/local/mailcatch"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

var folder = flag.String("knative.manifests", "../../../knative/base", "the kustomization whose objects are run")

// fixture runs everything that the manifests name, on this machine.
type fixture struct {
	t         *testing.T
	dir       string
	manifests manifests
	namespace string
	brokers   []string
	broker    *broker
	mishaps   *mishaps
	mails     *mailcatch.Server
	key       apikey.Key
	webhooks  string
	eventKey  string
	urls      migrations.URLs

	ctx        context.Context // for what the cluster does by itself
	addresses  map[reference]string
	services   map[string]*service
	deployed   []*process
	api        *client.Client
	clock, all sync.WaitGroup

	mu        sync.Mutex
	complains []error
}

// raise starts everything that is in the manifests.
func raise(t *testing.T, rnd *rand.Rand, chances map[mishap]float64) *fixture {
	t.Helper()
	return raiseSlow(t, rnd, chances, nil)
}

// raiseSlow is raise with a broker whose ingress delays each event.
func raiseSlow(
	t *testing.T, rnd *rand.Rand, chances map[mishap]float64, slow func() time.Duration,
) *fixture {
	t.Helper()
	h := &fixture{
		t: t, dir: t.TempDir(), addresses: map[reference]string{}, services: map[string]*service{},
		mishaps: newMishaps(rnd, chances), key: apikey.New(), webhooks: newSecret(), eventKey: newSecret(),
	}
	var err error
	if h.manifests, h.namespace, err = readManifests(*folder); err != nil {
		t.Fatal(err)
	}
	var end context.CancelFunc
	h.ctx, end = context.WithCancel(context.Background())
	h.urls = migrations.URLs{
		API: pgtest.Database(t, migrations.API), Scheduler: pgtest.Database(t, migrations.Scheduler),
		Worker: pgtest.Database(t, migrations.Worker),
	}
	h.startKafka()
	if h.mails, err = mailcatch.Start(mailcatch.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.mails.Close() })
	h.open()
	h.broker.slow = slow
	t.Cleanup(func() { h.close(end) }) // before the servers that they use
	h.wire()
	h.furnish()
	return h
}

func (h *fixture) startKafka() {
	h.t.Helper()
	server, err := localkafka.StartEmbedded(localkafka.Config{})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = server.Stop() })
	h.brokers = server.Brokers()
	cfg := kafkaevent.Config{Brokers: h.brokers, ReplicationFactor: 1}
	if err := kafkaevent.CreateTopics(h.t.Context(), cfg, jobevent.Topics(nil)); err != nil {
		h.t.Fatal(err)
	}
}

// open gives each object that takes requests an address; its process comes later.
func (h *fixture) open() {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	h.t.Cleanup(transport.CloseIdleConnections)
	h.broker = &broker{
		mishaps: h.mishaps, client: &http.Client{Transport: transport}, ctx: h.ctx, taken: map[string]int{}, namespace: h.namespace,
	}
	for _, o := range h.manifests {
		switch {
		case o.Kind == "Broker":
			h.serve(o, h.broker)
		case o.Kind == "KafkaSink":
			h.serve(o, h.newSink(o))
		case o.isServing():
			s := &service{
				name: o.Metadata.Name, dir: h.dir, mishaps: h.mishaps, complain: h.complain, ctx: h.ctx, way: transport,
			}
			h.services[s.name] = s
			h.serve(o, s)
		}
	}
}

func (h *fixture) serve(o object, handler http.Handler) {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = nil
	server.Start()
	h.t.Cleanup(server.Close)
	h.addresses[reference{o.APIVersion, o.Kind, o.Metadata.Name}] = server.URL
}

func (h *fixture) newSink(o object) *kafkaSink {
	h.t.Helper()
	kafka, err := kgo.NewClient(kgo.SeedBrokers(h.brokers...))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(kafka.Close)
	if mode := o.Spec.ContentMode; mode != "" && mode != "binary" {
		h.t.Fatalf("KafkaSink %s is %s", o.Metadata.Name, mode)
	}
	return &kafkaSink{topic: o.Spec.Topic, client: kafka}
}

// addressOf returns the address of a destination.
func (h *fixture) addressOf(to destination) string {
	h.t.Helper()
	if to.Ref == nil {
		h.t.Fatalf("%+v names no object", to)
	}
	at, known := h.addresses[*to.Ref]
	if !known {
		h.t.Fatalf("there is no %+v", *to.Ref)
	}
	return at + to.URI
}

// wire makes Triggers and PingSources.
func (h *fixture) wire() {
	h.t.Helper()
	for _, o := range h.manifests.of("Trigger") {
		given := o.Spec.Delivery
		if broker, there := h.manifests.find("Broker", o.Spec.Broker); !there {
			h.t.Fatalf("Trigger %s is of Broker %s, which there is not", o.Metadata.Name, o.Spec.Broker)
		} else if given == nil {
			given = broker.Spec.Delivery
		}
		patience, err := given.patience()
		if err != nil {
			h.t.Fatalf("Trigger %s: %v", o.Metadata.Name, err)
		}
		t := &trigger{
			name: o.Metadata.Name, of: o, subscriber: h.addressOf(o.Spec.Subscriber), patience: patience,
			seats: make(chan struct{}, atOnce),
		}
		if o.Metadata.Annotations["kafka.eventing.knative.dev/delivery.order"] == "ordered" {
			t.seats = make(chan struct{}, 1)
		}
		if given != nil && given.DeadLetterSink != nil {
			t.deadLetter = h.addressOf(*given.DeadLetterSink)
		}
		h.broker.triggers = append(h.broker.triggers, t)
	}
}

// tick starts the PingSources.
func (h *fixture) tick() {
	h.t.Helper()
	for _, o := range h.manifests.of("PingSource") {
		source, err := newPingSource(o, h.namespace, h.addressOf(o.Spec.Sink))
		if err != nil {
			h.t.Fatal(err)
		}
		h.clock.Go(func() { source.run(h.ctx, h.broker.client) })
	}
}

func (h *fixture) complain(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.complains = append(h.complains, err)
}

// close stops the clocks, then the functions, each of which must exit as it should, and then the broker.
func (h *fixture) close(end context.CancelFunc) {
	defer end()
	for _, s := range h.services {
		h.all.Go(s.close)
	}
	for _, p := range h.deployed {
		h.all.Go(func() {
			if err := p.stop(time.Minute); err != nil {
				h.complain(err)
			}
		})
	}
	h.all.Wait()
	end()
	h.clock.Wait()
	h.broker.work.Wait()
	if err := errors.Join(h.complains...); err != nil {
		h.t.Error(err)
	}
	h.readLogs()
	http.DefaultClient.CloseIdleConnections()
}
