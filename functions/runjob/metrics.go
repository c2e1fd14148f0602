package runjob

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// metrics has the worker's metrics. Their labels are bounded: the registry's job types, one for all others, and the
// kinds of outcome.
type metrics struct {
	known    func(jobType string) bool
	attempts *prometheus.CounterVec
	reaped   *prometheus.CounterVec
	duration *prometheus.HistogramVec
	delay    *prometheus.HistogramVec

	claims, settles           prometheus.Histogram
	claimSeconds, settleTimes prometheus.Histogram

	// The metrics by their label values, because looking a metric up costs more than counting.
	durations sync.Map                         // of job types, to prometheus.Observer
	counters  map[[2]string]prometheus.Counter // by job type and outcome; used by settleAll only
}

func newMetrics(f *Function, registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		counters: map[[2]string]prometheus.Counter{},
		known:    func(jobType string) bool { return f.registry.Has(jobType) },
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobweaver_worker_attempts_total", Help: "Attempts settled, by job type and outcome; sum.",
		}, []string{"job_type", "outcome"}),
		reaped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobweaver_worker_attempts_reaped_total",
			Help: "Attempts settled for another worker, which is silent (lost) or past their timeout (failed); sum.",
		}, []string{"outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "jobweaver_worker_handler_duration_seconds", Help: "How long handlers ran; sum.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 11),
		}, []string{"job_type"}),
		delay: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "jobweaver_worker_start_delay_seconds",
			Help:    "How long after the dispatch of an attempt its handler started, counted when it has ended; sum.",
			Buckets: []float64{.01, .05, .1, .5, 1, 5, 30, 300},
		}, []string{"queue"}),
		claims:       histogram("claim_batch_attempts", "Attempts asked for in one claim; sum.", 1, 2, 10),
		claimSeconds: histogram("claim_duration_seconds", "How long claims took; sum.", 0.0005, 2, 14),
		settles:      histogram("settle_batch_attempts", "Outcomes written at once; sum.", 1, 2, 10),
		settleTimes:  histogram("settle_duration_seconds", "How long writing outcomes took; sum.", 0.0005, 2, 14),
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "jobweaver_worker_" + name, Help: help}, value)
	}
	for _, kind := range []jobstate.Kind{jobstate.KindLost, jobstate.KindFailed} {
		m.reaped.WithLabelValues(string(kind)) // starts at zero, so that the first one is an increase
	}
	var errs []error
	for _, c := range []prometheus.Collector{
		m.attempts, m.reaped, m.duration, m.delay, m.claims, m.claimSeconds, m.settles, m.settleTimes,
		gauge("slots", "Attempts that can run at once; sum.", func() float64 { return float64(f.cfg.PoolSize) }),
		gauge("slots_busy", "Handlers that run; sum.", func() float64 { return float64(f.pool.Figures().Running) }),
		gauge("slots_overdue", "Handlers that run although their attempt is settled; sum.",
			func() float64 { return float64(f.pool.Figures().Overdue) }),
		gauge("attempts_held", "Attempts claimed and waiting for a slot; sum.",
			func() float64 { return float64(f.pool.Figures().Held) }),
		gauge("outcomes_unpublished", "Outcomes not yet settled and published; sum.",
			func() float64 { return float64(f.unpublished()) }),
	} {
		errs = append(errs, registerer.Register(c))
	}
	return m, errors.Join(errs...)
}

func (m *metrics) jobType(name string) string {
	if m.known(name) {
		return telemetry.JobType(name)
	}
	return telemetry.JobType("")
}

func histogram(name, help string, first, factor float64, n int) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "jobweaver_worker_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(first, factor, n),
	})
}

func (m *metrics) claimed(n int, took time.Duration) {
	m.claims.Observe(float64(n))
	m.claimSeconds.Observe(took.Seconds())
}

func (m *metrics) settledAll(n int, took time.Duration) {
	m.settles.Observe(float64(n))
	m.settleTimes.Observe(took.Seconds())
}

func (m *metrics) ran(a *pool.Attempt, d time.Duration) {
	jobType := m.jobType(a.Run.JobType)
	observer, ok := m.durations.Load(jobType)
	if !ok {
		observer, _ = m.durations.LoadOrStore(jobType, m.duration.WithLabelValues(jobType))
	}
	observer.(prometheus.Observer).Observe(d.Seconds())
	if !a.SentAt.IsZero() {
		m.delay.WithLabelValues(a.Queue).Observe(max(a.StartedAt.Sub(a.SentAt).Seconds(), 0)) // clocks differ
	}
}

func (m *metrics) settled(a *pool.Attempt, o workerdb.Outcome) {
	labels := [2]string{m.jobType(a.Run.JobType), string(o.Kind)}
	counter := m.counters[labels]
	if counter == nil {
		counter = m.attempts.WithLabelValues(labels[0], labels[1])
		m.counters[labels] = counter
	}
	counter.Inc()
}
