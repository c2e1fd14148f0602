package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	jobsAccepted   = counter("jobs_accepted_total", "Jobs that were accepted; sum.", "queue", "job_type")
	jobTransitions = counter("job_transitions_total",
		"Transitions of jobs into a state, except PENDING, QUEUED and RUNNING, each counted by the function that made it; "+
			"sum. Into FAILED: dead letters; into RETRYING: retries.", "job_type", "state")
	leasesExpired = counter("leases_expired_total",
		"Attempts that were published again because no worker had listed them for a lease; sum.", "queue")
	deliveries = counter("deliveries_total",
		"Tries to deliver the end of a job to its callbackUrl: delivered, retried later, or failed for good; sum.", "outcome")
	hookRequests = counter("hook_requests_total",
		"Signed requests of other systems to /hooks/<name>: accepted as a job, replayed, or rejected; sum.", "hook", "result")
	deliverySeconds = promauto.NewHistogram(prometheus.HistogramOpts{
		Namespace: "jobweaver", Name: "delivery_duration_seconds", Help: "How long such a try took; sum.", Buckets: latency,
	})

	acceptedOf    children[[2]string, prometheus.Counter] // by queue and job type
	transitionsOf children[[2]string, prometheus.Counter] // by job type and state
)

// JobsAccepted counts jobs of one queue and type.
func JobsAccepted(queue, jobType string, n int) {
	key := [2]string{queue, JobType(jobType)}
	acceptedOf.of(key, func() prometheus.Counter { return jobsAccepted.WithLabelValues(key[0], key[1]) }).Add(float64(n))
}

// JobTransitions counts committed transitions of jobs of one type into one state.
func JobTransitions(jobType, state string, n int) {
	key := [2]string{JobType(jobType), state}
	transitionsOf.of(key, func() prometheus.Counter {
		return jobTransitions.WithLabelValues(key[0], key[1])
	}).Add(float64(n))
}

// The outcomes of a try to deliver.
const (
	DeliveryDelivered = "delivered"
	DeliveryRetried   = "retried"
	DeliveryFailed    = "failed"
)

// Delivered counts a try; outcome is one of the constants.
func Delivered(outcome string, took time.Duration) {
	deliveries.WithLabelValues(outcome).Inc()
	deliverySeconds.Observe(took.Seconds())
}

// The results of a request to a hook.
const (
	HookAccepted = "accepted"
	HookReplayed = "replayed" // its message had come before
	HookRejected = "rejected"
)

// HookRequest counts a request to a hook of the configuration; result is one of the constants.
func HookRequest(hook, result string) { hookRequests.WithLabelValues(hook, result).Inc() }

// LeasesExpired counts attempts of one queue that are published again.
func LeasesExpired(queue string, n int) { leasesExpired.WithLabelValues(queue).Add(float64(n)) }

// JobCount is how many jobs are in a state.
type JobCount struct {
	State, Queue, JobType string
	N                     int64
	Oldest                time.Time // when the first of them was accepted
}

// JobCounts are the counts of all jobs that had not ended at an instant.
type JobCounts struct {
	AsOf time.Time
	Of   []JobCount
}

// QueueFigures are the scheduler's counts of waiting jobs and of attempts that are out.
type QueueFigures struct {
	At            time.Time
	InFlight      map[string]int           // attempts that are out, by queue
	Waited        map[string]time.Duration // how long the first job of a queue has been ready; without empty queues
	NoWorker      []NoWorker               // the types without a worker for longest
	NoWorkerLanes int                      // lanes of jobs without a worker
	Late          time.Duration            // how long a job has been due that dispatch has not made ready
}

// NoWorker is a job type of which jobs wait in a queue and that no live worker of the queue runs.
type NoWorker struct {
	Queue, JobType string
	For            time.Duration
}

// WatchJobs calls read at each scrape. read returns false if it has no counts.
func (m Meter) WatchJobs(read func() (JobCounts, bool)) (stop func()) {
	return watched.add(func(put put) {
		counts, ok := read()
		if !ok {
			return
		}
		put(descJobsCounted, float64(counts.AsOf.UnixMilli())/1000)
		type labels struct{ state, queue, jobType string }
		all := map[labels]int64{} // several job types may be other
		for _, c := range counts.Of {
			of := labels{c.State, c.Queue, JobType(c.JobType)}
			all[of] += c.N
			put(descJobsAge, max(time.Since(c.Oldest).Seconds(), 0), of.state, of.queue, of.jobType)
		}
		for of, n := range all {
			put(descJobs, float64(n), of.state, of.queue, of.jobType)
		}
	})
}

// figuresAge is how old exported figures may be. A process that has not counted for longer exports none.
const figuresAge = time.Minute

// WatchQueues calls read at each scrape. read returns nil if the process has not counted yet.
func (m Meter) WatchQueues(read func() *QueueFigures) (stop func()) {
	return watched.add(func(put put) {
		figures := read()
		if figures == nil || time.Since(figures.At) > figuresAge {
			return
		}
		for queue, n := range figures.InFlight {
			put(descInFlight, float64(n), queue)
		}
		for queue, waited := range figures.Waited {
			put(descQueueWait, max(waited.Seconds(), 0), queue)
		}
		type labels struct{ queue, jobType string }
		longest := map[labels]time.Duration{} // several job types may be other
		for _, missing := range figures.NoWorker {
			of := labels{missing.Queue, JobType(missing.JobType)}
			longest[of] = max(longest[of], missing.For)
		}
		for of, d := range longest {
			put(descNoWorker, d.Seconds(), of.queue, of.jobType)
		}
		put(descNoWorkerKinds, float64(figures.NoWorkerLanes))
		put(descLate, max(figures.Late.Seconds(), 0))
	})
}
