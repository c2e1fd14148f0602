package telemetry

import (
	"net/http"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Why an event was rejected: the values of the metric's label.
const (
	RejectedUndecodable = "undecodable" // the record is no event
	RejectedInvalid     = "invalid"     // the handler can do nothing with it
	RejectedPanic       = "panic"       // the handler panics whenever it gets it
)

// The labels have few values: function is one of ours, type one of jobevent's or other.
var (
	latency = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

	eventsHandled = counter("events_handled_total", "Events that a function has handled.", "function", "type")
	eventsSaid    = counter("events_said_total", "Events said and acknowledged.", "function", "type")
	eventsRefused = counter("events_refused_total",
		"Events said that the sink or the broker will never take; they are lost.", "function", "type")
	eventsRejected = counter("events_rejected_total",
		"Events heard that can never be handled.", "function", "reason")
	batchSize = histogram("handle_batch_size", "Events in a handled batch.",
		[]float64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000}, "function")
	handleSeconds = histogram("handle_duration_seconds", "How long a function's Handle took.", latency, "function")
	handleErrors  = counter("handle_errors_total", "Calls of a function's Handle that failed.", "function")
	tickSeconds   = histogram("tick_duration_seconds", "How long a function's Tick took.", latency, "function")
	tickErrors    = counter("tick_errors_total", "Calls of a function's Tick that failed.", "function")
	publishTime   = histogram("publish_duration_seconds", "How long saying events took.", latency, "function")
	publishErrors = counter("publish_errors_total", "Tries to say events that failed.", "function")
	buildInfo     = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "jobweaver", Name: "build_info", Help: "Always 1; its labels tell what runs.",
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

// MetricsHandler serves /metrics: of all functions in this process, and of the process itself.
func MetricsHandler() http.Handler { return promhttp.Handler() }

// Meter counts what one function does. Only a function's host, or a function that hosts itself, has
// one.
type Meter struct{ function string }

// NewMeter makes the meter of a function.
func NewMeter(function string) Meter { return Meter{function} }

// Runs notes which build of the function runs.
func (m Meter) Runs(version string) { buildInfo.WithLabelValues(m.function, version).Set(1) }

// Handled counts a call of Handle with its batch.
func (m Meter) Handled(batch []event.Event, took time.Duration, err error) {
	handleSeconds.WithLabelValues(m.function).Observe(took.Seconds())
	batchSize.WithLabelValues(m.function).Observe(float64(len(batch)))
	if err != nil {
		handleErrors.WithLabelValues(m.function).Inc()
		return
	}
	m.addByType(eventsHandled, batch)
}

// Said counts a try to say events, with those that were acknowledged.
func (m Meter) Said(events []event.Event, took time.Duration, err error) {
	publishTime.WithLabelValues(m.function).Observe(took.Seconds())
	if err != nil {
		publishErrors.WithLabelValues(m.function).Inc()
	}
	m.addByType(eventsSaid, events)
}

// Ticked counts a call of Tick.
func (m Meter) Ticked(took time.Duration, err error) {
	tickSeconds.WithLabelValues(m.function).Observe(took.Seconds())
	if err != nil {
		tickErrors.WithLabelValues(m.function).Inc()
	}
}

// Rejected counts an event heard that can never be handled; reason is one of the constants.
func (m Meter) Rejected(reason string) { eventsRejected.WithLabelValues(m.function, reason).Inc() }

// Refused counts an event said that nobody will ever take.
func (m Meter) Refused(e event.Event) { eventsRefused.WithLabelValues(m.function, typeLabel(e)).Inc() }

func (m Meter) addByType(to *prometheus.CounterVec, events []event.Event) {
	byType := map[string]int{}
	for _, e := range events {
		byType[typeLabel(e)]++
	}
	for typ, n := range byType {
		to.WithLabelValues(m.function, typ).Add(float64(n))
	}
}

// typeLabel: a foreign event's type is anybody's text, and each would be a series of its own.
func typeLabel(e event.Event) string {
	if _, err := jobevent.TopicOf(e); err != nil {
		return "other"
	}
	return e.Type()
}
