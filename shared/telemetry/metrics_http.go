package telemetry

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	httpRequests = counter("http_requests_total",
		"HTTP requests that were answered; sum. Not those for probes and metrics.", "function", "route", "method", "code")
	httpSeconds = histogram("http_request_duration_seconds",
		"How long answering HTTP requests took; sum. Not those whose answer was held (?wait=).", latency,
		"function", "route", "method")
	httpInFlight = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "jobweaver", Name: "http_requests_in_flight", Help: "HTTP requests not yet answered; sum.",
	}, []string{"function"})
)

// request has the labels of an HTTP request.
type request struct {
	route, method string
	code          int // 0: any
}

// RouteUnknown is the label of a request that matches no route.
const RouteUnknown = "other"

// Request counts an arriving request; the returned function counts its answer. route is a pattern, never a path. A held
// answer (?wait=) has no latency.
func (m Meter) Request(method string) (answered func(route string, code int, held bool)) {
	m.inFlight.Inc()
	began := time.Now()
	return func(route string, code int, held bool) {
		m.inFlight.Dec()
		r := request{route: route, method: methodLabel(method)}
		if !held {
			m.latencies.of(r, func() prometheus.Observer {
				return httpSeconds.WithLabelValues(m.function, r.route, r.method)
			}).Observe(time.Since(began).Seconds())
		}
		r.code = codeLabel(code)
		m.requests.of(r, func() prometheus.Counter {
			return httpRequests.WithLabelValues(m.function, r.route, r.method, strconv.Itoa(r.code))
		}).Inc()
	}
}

// Requests counts the requests of a handler under one route.
func (m Meter) Requests(route string, handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answered := m.Request(r.Method)
		status := &statusWriter{ResponseWriter: w, code: http.StatusOK}
		defer func() { answered(route, status.code, false) }()
		handler(status, r)
	}
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter

	code  int
	wrote bool
}

// WriteHeader is http.ResponseWriter's.
func (w *statusWriter) WriteHeader(code int) {
	if !w.wrote {
		w.code, w.wrote = code, code >= http.StatusOK
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// methodLabel bounds the values of the label: a client can send any text as a method.
func methodLabel(method string) string {
	if slices.Contains([]string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions,
	}, method) {
		return method
	}
	return "other"
}

func codeLabel(code int) int {
	if http.StatusText(code) == "" {
		return 0
	}
	return code
}
