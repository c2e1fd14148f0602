package telemetry

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// watch is a metric whose value is read at each scrape.
type watch struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	// most: if several values have the same labels, they are replicas of one count, and the largest is exported.
	// Otherwise they are parts, and their sum is exported.
	most bool
}

func watching(kind prometheus.ValueType, name, help string, labels ...string) *watch {
	return &watch{
		desc: prometheus.NewDesc("jobweaver_"+name, help, labels, nil), kind: kind, most: strings.Contains(help, "; max"),
	}
}

var (
	descLag = watching(prometheus.GaugeValue, "consumer_lag_records",
		"Records of a partition that are not yet done; sum. Exported by the member that holds the partition.",
		"function", "topic", "partition")
	descGap = watching(prometheus.GaugeValue, "consumer_committable_gap_records",
		"Records of a partition that are done and cannot be committed, because an earlier one is not done; sum.",
		"function", "topic", "partition")
	descNext = watching(prometheus.GaugeValue, "consumer_next_offset",
		"Offset of the next record of a partition to be handled, or to be read by a worker, which holds attempts of "+
			"earlier ones; max.", "function", "topic", "partition")
	descEnd = watching(prometheus.GaugeValue, "consumer_end_offset",
		"Offset that the next record of a partition will have; max.", "function", "topic", "partition")

	descReady = watching(prometheus.GaugeValue, "ready",
		"Whether the readiness probe of the function answers 200: 1 or 0; max.", "function")
	descCertificate = watching(prometheus.GaugeValue, "certificate_expiry_timestamp_seconds",
		"When the certificate that a setting names expires, or the last CA of a setting; max.", "setting")

	descDatabaseBytes = watching(prometheus.GaugeValue, "database_size_bytes",
		"Size of a database with its indexes, at most a minute old; max.", "database")
	descConnections = watching(prometheus.GaugeValue, "database_connections",
		"Connections to the database, used, idle or opening; sum.", "function", "state")
	descConnectionsLimit = watching(prometheus.GaugeValue, "database_connections_limit",
		"The most connections to the database at once; sum.", "function")
	descAcquires = watching(prometheus.CounterValue, "database_acquires_total",
		"How often a connection was taken; sum.", "function")
	descWaits = watching(prometheus.CounterValue, "database_acquire_waits_total",
		"How often a caller had to wait for a connection, or for one to open; sum.", "function")
	descWaited = watching(prometheus.CounterValue, "database_acquire_wait_seconds_total",
		"How long callers waited for connections; sum.", "function")

	descJobs = watching(prometheus.GaugeValue, "jobs",
		"Jobs that have not ended, at the last count; max, since every replica of projection exports all.",
		"state", "queue", "job_type")
	descJobsAge = watching(prometheus.GaugeValue, "jobs_oldest_age_seconds",
		"How long ago the oldest of the jobs in a state was accepted; max.", "state", "queue", "job_type")
	descJobsCounted = watching(prometheus.GaugeValue, "jobs_counted_timestamp_seconds",
		"When the jobs were last counted; max.")

	descInFlight = watching(prometheus.GaugeValue, "attempts_in_flight",
		"Attempts that are out, with a worker or on their way; max, since every replica of watchdog exports all.", "queue")
	descQueueWait = watching(prometheus.GaugeValue, "queue_wait_seconds",
		"How long ago the next job to dispatch became ready, a level of priority counting 10 s; max.", "queue")
	descNoWorker = watching(prometheus.GaugeValue, "no_worker_seconds",
		"For how long no live worker of a queue has run a job type of which jobs wait; max.", "queue", "job_type")
	descNoWorkerKinds = watching(prometheus.GaugeValue, "no_worker_kinds",
		"Kinds of jobs (queue, job type and, for pull workers, owner) that wait and that no live worker runs; max.")
	descLate = watching(prometheus.GaugeValue, "clock_lateness_seconds",
		"How long a job has been due that dispatch has not made ready; max.")

	watched = &watches{all: []*watch{
		descLag, descGap, descNext, descEnd, descReady, descCertificate,
		descDatabaseBytes, descConnections, descConnectionsLimit, descAcquires, descWaits, descWaited,
		descJobs, descJobsAge, descJobsCounted, descInFlight, descQueueWait, descNoWorker, descNoWorkerKinds, descLate,
	}}
)

func init() {
	prometheus.MustRegister(watched)
	watched.add(func(put put) {
		for setting, at := range tlsfiles.Expiries() {
			put(descCertificate, float64(at.Unix()), setting)
		}
	})
}

// put exports one value.
type put func(w *watch, value float64, labels ...string)

// watches reads all sources at a scrape and exports each series once: a process may have several functions, or one of
// them twice.
type watches struct {
	all []*watch

	mu      sync.Mutex
	sources []*func(put)
}

func (w *watches) add(source func(put)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := &source
	w.sources = append(w.sources, at)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sources = slices.DeleteFunc(w.sources, func(other *func(put)) bool { return other == at })
	}
}

// Describe is prometheus.Collector's.
func (w *watches) Describe(to chan<- *prometheus.Desc) {
	for _, one := range w.all {
		to <- one.desc
	}
}

// Collect is prometheus.Collector's.
func (w *watches) Collect(to chan<- prometheus.Metric) {
	w.mu.Lock()
	sources := slices.Clone(w.sources)
	w.mu.Unlock()
	type series struct {
		of     *watch
		labels string
	}
	type found struct {
		value  float64
		labels []string
	}
	all := map[series]found{}
	for _, source := range sources {
		(*source)(func(of *watch, value float64, labels ...string) {
			key := series{of, strings.Join(labels, "\x00")}
			if before, twice := all[key]; twice && of.most {
				value = max(value, before.value)
			} else if twice {
				value += before.value
			}
			all[key] = found{value, labels}
		})
	}
	for key, one := range all {
		to <- prometheus.MustNewConstMetric(key.of.desc, key.of.kind, one.value, one.labels...)
	}
}

// Partition is the progress of a consumer in a partition that it holds.
type Partition struct {
	Topic string
	ID    int32
	Lag   int64
	Gap   int   // records that are done and cannot be committed
	Next  int64 // offset of the next record to be handled, or to be read by a worker
	End   int64 // offset that the next record of the partition will have
}

// WatchPartitions calls read at each scrape for the partitions that a consumer holds.
func (m Meter) WatchPartitions(read func() []Partition) (stop func()) {
	return watched.add(func(put put) {
		for _, p := range read() {
			id := strconv.Itoa(int(p.ID))
			put(descLag, float64(p.Lag), m.function, p.Topic, id)
			put(descGap, float64(p.Gap), m.function, p.Topic, id)
			put(descNext, float64(p.Next), m.function, p.Topic, id)
			put(descEnd, float64(p.End), m.function, p.Topic, id)
		}
	})
}

// WatchReady calls read at each scrape.
func (m Meter) WatchReady(read func() bool) (stop func()) {
	return watched.add(func(put put) {
		ready := 0.0
		if read() {
			ready = 1
		}
		put(descReady, ready, m.function)
	})
}

// Pool has the statistics of a pool of database connections, and of its database.
type Pool struct {
	Database string
	Bytes    int64 // size of the database; 0: not known

	Used, Idle, Opening, Limit int32
	Acquires, Waits            int64
	Waited                     time.Duration
}

// WatchPool calls read at each scrape.
func (m Meter) WatchPool(read func() Pool) (stop func()) {
	return watched.add(func(put put) {
		p := read()
		if p.Bytes > 0 {
			put(descDatabaseBytes, float64(p.Bytes), p.Database)
		}
		put(descConnections, float64(p.Used), m.function, "used")
		put(descConnections, float64(p.Idle), m.function, "idle")
		put(descConnections, float64(p.Opening), m.function, "opening")
		put(descConnectionsLimit, float64(p.Limit), m.function)
		put(descAcquires, float64(p.Acquires), m.function)
		put(descWaits, float64(p.Waits), m.function)
		put(descWaited, p.Waited.Seconds(), m.function)
	})
}
