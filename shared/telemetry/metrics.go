package telemetry

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// The reasons for which an event is rejected: the values of the metric's label.
const (
	RejectedUndecodable = "undecodable" // the record is not an event
	RejectedInvalid     = "invalid"     // the handler can do nothing with it
	RejectedPanic       = "panic"       // the handler panics at each try
	RejectedUnsigned    = "unsigned"    // no key of ours has signed it
)

// The labels have few values: function is a function of JobWeaver, type one of jobevent's or other.
var (
	latency = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	sizes   = []float64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000}

	eventsHandled   = counter("events_handled_total", "Events that a function has handled; sum.", "function", "type")
	eventsPublished = counter("events_published_total", "Events published and acknowledged; sum.", "function", "type")
	eventsRefused   = counter("events_refused_total",
		"Events that the sink or the broker will never take, and that are lost; sum.", "function", "type")
	eventsRejected = counter("events_rejected_total", "Events that can never be handled; sum.", "function", "reason")

	handleBatch   = histogram("handle_batch_events", "Events in a handled batch; sum.", sizes, "function")
	handleSeconds = histogram("handle_duration_seconds", "How long a function's Handle took; sum.", latency, "function")
	handleErrors  = counter("handle_errors_total", "Calls of a function's Handle that failed; sum.", "function")
	eventAge      = histogram("handle_event_age_seconds",
		"How long ago the first event of a batch was made when it was handled; sum.", latency, "function")

	tickSeconds = histogram("tick_duration_seconds", "How long a function's Tick took; sum.", latency, "function")
	tickErrors  = counter("tick_errors_total", "Calls of a function's Tick that failed; sum.", "function")

	publishBatch   = histogram("publish_batch_events", "Acknowledged events of one publish; sum.", sizes, "function")
	publishSeconds = histogram("publish_duration_seconds", "How long it took to publish events; sum.", latency, "function")
	publishErrors  = counter("publish_errors_total", "Tries to publish events that failed; sum.", "function")

	commitSeconds = histogram("consumer_commit_duration_seconds",
		"How long committing offsets took; sum.", latency, "function")
	disconnects = counter("consumer_disconnects_total",
		"How often a consumer lost its broker and connected again; sum.", "function")

	buildInfo = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "jobweaver", Name: "build_info", Help: "Always 1 for each process; its labels name function and version.",
	}, []string{"function", "version"})
)

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return promauto.NewCounterVec(prometheus.CounterOpts{Namespace: "jobweaver", Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return promauto.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "jobweaver", Name: name, Help: help, Buckets: buckets,
	}, labels)
}

// MetricsHandler serves /metrics, with the metrics of the process and of all functions in it.
func MetricsHandler() http.Handler { return promhttp.Handler() }

// Meter has the metrics of one function. Only a function's host, or a function that hosts itself, has
// one. Counting an event or a request costs no allocation.
type Meter struct {
	*meter
}

type meter struct {
	function string

	handled, published children[string, prometheus.Counter]   // by type
	requests           children[request, prometheus.Counter]  // by route, method and code
	latencies          children[request, prometheus.Observer] // by route and method
	inFlight           prometheus.Gauge
	handle, age        prometheus.Observer
	handleN, publishN  prometheus.Observer
	publish, commit    prometheus.Observer
}

var meters children[string, *meter]

// NewMeter makes the meter of a function. All meters of a function share their counts.
func NewMeter(function string) Meter {
	return Meter{meters.of(function, func() *meter {
		// These start at 0; otherwise the first error would be no increase.
		for _, errors := range []*prometheus.CounterVec{handleErrors, tickErrors, publishErrors, disconnects} {
			errors.WithLabelValues(function)
		}
		for _, reason := range []string{RejectedUndecodable, RejectedInvalid, RejectedPanic, RejectedUnsigned} {
			eventsRejected.WithLabelValues(function, reason)
		}
		return &meter{
			function: function,
			inFlight: httpInFlight.WithLabelValues(function),
			handle:   handleSeconds.WithLabelValues(function), handleN: handleBatch.WithLabelValues(function),
			age:     eventAge.WithLabelValues(function),
			publish: publishSeconds.WithLabelValues(function), publishN: publishBatch.WithLabelValues(function),
			commit: commitSeconds.WithLabelValues(function),
		}
	})}
}

// Runs exports the version of the function.
func (m Meter) Runs(version string) { buildInfo.WithLabelValues(m.function, version).Set(1) }

// Handled counts a call of Handle with its batch.
func (m Meter) Handled(batch []jobevent.Item, took time.Duration, err error) {
	m.handle.Observe(took.Seconds())
	m.handleN.Observe(float64(len(batch)))
	if len(batch) > 0 {
		if made := batch[0].Time(); !made.IsZero() {
			m.age.Observe(max(time.Since(made)-took, 0).Seconds()) // clocks differ, and a falling sum would look like a restart
		}
	}
	if err != nil {
		handleErrors.WithLabelValues(m.function).Inc()
		return
	}
	m.addByType(&m.handled, eventsHandled, batch)
}

// Published counts a try to publish; events are those that were acknowledged.
func (m Meter) Published(events []jobevent.Item, took time.Duration, err error) {
	m.publish.Observe(took.Seconds())
	if err != nil {
		publishErrors.WithLabelValues(m.function).Inc()
	}
	if len(events) > 0 {
		m.publishN.Observe(float64(len(events)))
	}
	m.addByType(&m.published, eventsPublished, events)
}

// Ticked counts a call of Tick.
func (m Meter) Ticked(took time.Duration, err error) {
	tickSeconds.WithLabelValues(m.function).Observe(took.Seconds())
	if err != nil {
		tickErrors.WithLabelValues(m.function).Inc()
	}
}

// Rejected counts a consumed event that can never be handled; reason is one of the constants.
func (m Meter) Rejected(reason string) { eventsRejected.WithLabelValues(m.function, reason).Inc() }

// Refused counts an event that the sink or the broker will never take.
func (m Meter) Refused(e jobevent.Item) {
	eventsRefused.WithLabelValues(m.function, typeLabel(e)).Inc()
}

// Committed counts a commit of offsets.
func (m Meter) Committed(took time.Duration) { m.commit.Observe(took.Seconds()) }

// Disconnected counts a consumer that must connect again.
func (m Meter) Disconnected() { disconnects.WithLabelValues(m.function).Inc() }

// addByType adds once for each run of events of one type: a batch has one or two.
func (m Meter) addByType(to *children[string, prometheus.Counter], of *prometheus.CounterVec, events []jobevent.Item) {
	for len(events) > 0 {
		n := 1
		for n < len(events) && events[n].Type() == events[0].Type() {
			n++
		}
		label := typeLabel(events[0])
		to.of(label, func() prometheus.Counter { return of.WithLabelValues(m.function, label) }).Add(float64(n))
		events = events[n:]
	}
}

// typeLabel bounds the values of the label: a foreign event may have any type, and each would be a series of its own.
func typeLabel(e jobevent.Item) string {
	if _, err := e.Topic(); err != nil {
		return "other"
	}
	return e.Type()
}
