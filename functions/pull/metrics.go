package pull

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics has the metrics of pull in addition to the worker's.
type metrics struct {
	claims, handed, lost, refused prometheus.Counter
	settled                       *prometheus.CounterVec
}

func newMetrics(f *Function, registerer prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "jobweaver_pull_" + name, Help: help})
	}
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "jobweaver_pull_" + name, Help: help},
			func() float64 { return float64(value()) })
	}
	m := &metrics{
		claims:  counter("claims_total", "Claims of pull workers; sum."),
		handed:  counter("attempts_handed_total", "Attempts handed to pull workers; sum."),
		lost:    counter("attempts_lost_total", "Attempts whose pull worker sent no heartbeat for a lease; sum."),
		refused: counter("results_refused_total", "Results of attempts that were over, or could not be stored; sum."),
		settled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobweaver_pull_results_total", Help: "Results of pull workers that were stored, by status; sum.",
		}, []string{"status"}),
	}
	var errs []error
	for _, c := range []prometheus.Collector{
		unclaimed{f}, m.claims, m.handed, m.lost, m.refused, m.settled,
		gauge("workers", "Pull workers that claim or have attempts; sum.", func() int {
			f.mu.Lock()
			defer f.mu.Unlock()
			return len(f.workers)
		}),
		gauge("attempts_in_hand", "Attempts that pull workers have; sum.", func() int {
			f.mu.Lock()
			defer f.mu.Unlock()
			return len(f.tokens)
		}),
	} {
		errs = append(errs, registerer.Register(c))
	}
	return m, errors.Join(errs...)
}

// unclaimed collects the attempts that no claim has taken yet, of each queue that is served at the moment.
type unclaimed struct{ f *Function }

var unclaimedDesc = prometheus.NewDesc("jobweaver_pull_attempts_unclaimed",
	"Attempts that no claim has taken yet, by queue; sum.", []string{"queue"}, nil)

// Describe implements prometheus.Collector.
func (unclaimed) Describe(to chan<- *prometheus.Desc) { to <- unclaimedDesc }

// Collect implements prometheus.Collector.
func (u unclaimed) Collect(to chan<- prometheus.Metric) {
	counts := u.f.worker.Unclaimed()
	for _, queue := range u.f.worker.Queues() {
		to <- prometheus.MustNewConstMetric(unclaimedDesc, prometheus.GaugeValue, float64(counts[queue]), queue)
	}
}
