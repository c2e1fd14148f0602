package runjob

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// metrics have bounded labels: the registry's job types (and one for all others), the kinds of outcome,
// the queues of the configuration.
type metrics struct {
	known    func(jobType string) bool
	attempts *prometheus.CounterVec
	duration *prometheus.HistogramVec
	claims   prometheus.Histogram

	// What label values lead to: looking that up costs more than counting.
	durations sync.Map                         // of job types, to prometheus.Observer
	counters  map[[2]string]prometheus.Counter // of job type and outcome; only of who settles
}

func newMetrics(f *Function, registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		counters: map[[2]string]prometheus.Counter{},
		known:    func(jobType string) bool { return f.registry.Find(jobType) != nil },
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobweaver_worker_attempts_total", Help: "Attempts settled, by job type and outcome.",
		}, []string{"job_type", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "jobweaver_worker_handler_seconds", Help: "How long handlers ran.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 11),
		}, []string{"job_type"}),
		claims: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "jobweaver_worker_claim_batch", Help: "Attempts asked for in one claim.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}),
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "jobweaver_worker_" + name, Help: help}, value)
	}
	var errs []error
	for _, c := range []prometheus.Collector{
		m.attempts, m.duration, m.claims,
		gauge("slots", "Attempts that can run at once.", func() float64 { return float64(f.cfg.PoolSize) }),
		gauge("slots_busy", "Handlers that run.", func() float64 { return float64(f.pool.figures().running) }),
		gauge("slots_overdue", "Handlers that run although their attempt is settled.",
			func() float64 { return float64(f.pool.figures().overdue) }),
		gauge("attempts_held", "Attempts claimed and waiting for a slot.",
			func() float64 { return float64(f.pool.figures().held) }),
		gauge("outcomes_unsaid", "Outcomes not yet settled and published.", func() float64 { return float64(f.unsaid()) }),
		gauge("offset_gap", "Most records of one partition that are done and cannot be committed.",
			func() float64 { return float64(f.consumers.gap()) }),
	} {
		errs = append(errs, registerer.Register(c))
	}
	return m, errors.Join(errs...)
}

func (m *metrics) jobType(name string) string {
	if m.known(name) {
		return name
	}
	return "unknown"
}

func (m *metrics) claimed(n int) { m.claims.Observe(float64(n)) }

func (m *metrics) ran(a *attempt, d time.Duration) {
	jobType := m.jobType(a.run.JobType)
	observer, ok := m.durations.Load(jobType)
	if !ok {
		observer, _ = m.durations.LoadOrStore(jobType, m.duration.WithLabelValues(jobType))
	}
	observer.(prometheus.Observer).Observe(d.Seconds())
}

func (m *metrics) settled(a *attempt, o workerdb.Outcome) {
	labels := [2]string{m.jobType(a.run.JobType), string(o.Kind)}
	counter := m.counters[labels]
	if counter == nil {
		counter = m.attempts.WithLabelValues(labels[0], labels[1])
		m.counters[labels] = counter
	}
	counter.Inc()
}
