package client

import (
	"context"
	"time"
)

// Installation is the installation as a whole.
type Installation struct{ c *Client }

// Me reads the owner, the actor and the roles of the client's key.
func (i Installation) Me(ctx context.Context) (*Me, error) { return fetch[Me](ctx, i.c, "/api/me") }

// Owners reads the names of at most 200 owners that contain part.
func (i Installation) Owners(ctx context.Context, part string) ([]string, error) {
	return all[string](ctx, i.c, "/api/owners"+query(given("limit", "200", "q", part)), "owners")
}

// WebhookSecrets reads the keys by which receivers verify the messages of JobWeaver: those of an owner, or your own if
// ownerID is empty.
func (i Installation) WebhookSecrets(ctx context.Context, ownerID string) (*WebhookSecrets, error) {
	return fetch[WebhookSecrets](ctx, i.c, "/api/webhook-secrets"+query(given("ownerId", ownerID)))
}

// Stats reads how many jobs there are, how many end, and how long they take; with a queue or a job type, only theirs.
func (i Installation) Stats(ctx context.Context, queue, jobType string) (*Stats, error) {
	return fetch[Stats](ctx, i.c, "/api/stats"+query(given("queue", queue, "type", jobType)))
}

// Lag reads how far functions lag behind their topics.
func (i Installation) Lag(ctx context.Context) (*Lag, error) { return fetch[Lag](ctx, i.c, "/api/lag") }

// Health reads whether the installation can take and run jobs.
func (i Installation) Health(ctx context.Context) (*Health, error) {
	return fetch[Health](ctx, i.c, "/api/health")
}

// Health is the health of an installation, and of its components: job, db and kafka.
type Health struct {
	Status     string               `json:"status"` // UP, DEGRADED or DOWN
	Components map[string]Component `json:"components"`
}

// Component is the health of a part.
type Component struct {
	Status  string         `json:"status"`
	Reason  string         `json:"reason"`
	Details map[string]int `json:"details"` // only of job
}

// Lag is how far functions lag behind their topics.
type Lag struct {
	At     time.Time  `json:"at"`
	Topics []TopicLag `json:"topics"` // nil: it is not known
}

// TopicLag is how many records a function has not committed, and how many processes consume the topic.
type TopicLag struct {
	Function string `json:"function"`
	Topic    string `json:"topic"`
	Records  int64  `json:"records"`
	Members  int    `json:"members"`
}

// Stats has the statistics of an installation.
type Stats struct {
	At            time.Time           `json:"at"`
	AsOf          *time.Time          `json:"asOf"` // when the jobs were counted; nil: not yet
	Jobs          map[string]int64    `json:"jobs"` // by state
	Types         []TypeStats         `json:"types"`
	Queues        []QueueStats        `json:"queues"`
	OldestWaiting *OldestWaiting      `json:"oldestWaiting"`
	Throughput    Throughput          `json:"throughput"`
	Latency       map[string]Latency  `json:"latency"`  // of the last 5m, 1h, 24h and 30d
	Failures      map[string]Failures `json:"failures"` // of the last 1h, 24h and 30d
}

// TypeStats has the jobs of a type, by state.
type TypeStats struct {
	JobType string           `json:"jobType"`
	Jobs    map[string]int64 `json:"jobs"`
}

// QueueStats has the jobs of a queue, by state.
type QueueStats struct {
	Queue string           `json:"queue"`
	Jobs  map[string]int64 `json:"jobs"`
}

// OldestWaiting is the job that has waited for the longest time.
type OldestWaiting struct {
	JobID     string    `json:"jobId"`
	CreatedAt time.Time `json:"createdAt"`
	AgeMs     int64     `json:"ageMs"`
}

// Throughput is how many jobs were accepted and ended.
type Throughput struct {
	PerSecond map[string]Rates `json:"perSecond"` // of the last 1m, 5m and 1h
	Minutes   []Span           `json:"minutes"`   // the last 60, oldest first; the last one is not over
	Hours     []Span           `json:"hours"`     // the last 24
	Days      []Span           `json:"days"`      // the last 30, in UTC
}

// Rates are jobs in a second.
type Rates struct {
	Accepted  float64 `json:"accepted"`
	Completed float64 `json:"completed"`
	Failed    float64 `json:"failed"`
	Cancelled float64 `json:"cancelled"`
}

// Span has the jobs of a minute, an hour or a day.
type Span struct {
	At        time.Time `json:"at"` // when it began
	Accepted  int64     `json:"accepted"`
	Completed int64     `json:"completed"`
	Failed    int64     `json:"failed"`
	Cancelled int64     `json:"cancelled"`
}

// Latency is how long jobs took.
type Latency struct {
	AcceptToStart Percentiles `json:"acceptToStart"`
	Run           Percentiles `json:"run"`
	AcceptToEnd   Percentiles `json:"acceptToEnd"`
}

// Percentiles are the percentiles of jobs; nil: there were none.
type Percentiles struct {
	Count     int64          `json:"count"`
	P50Ms     *float64       `json:"p50Ms"`
	P95Ms     *float64       `json:"p95Ms"`
	P99Ms     *float64       `json:"p99Ms"`
	Histogram []HistogramBar `json:"histogram,omitempty"` // only of a queue or a job type
}

// HistogramBar has the jobs that took longer than half of UpToMs, up to UpToMs.
type HistogramBar struct {
	UpToMs float64 `json:"upToMs"`
	Jobs   int64   `json:"jobs"`
}

// Failures are the job types and the error codes with the most failures.
type Failures struct {
	JobTypes   []FailedJobType   `json:"jobTypes"`
	ErrorCodes []FailedErrorCode `json:"errorCodes"`
}

// FailedJobType has the failed jobs of a type.
type FailedJobType struct {
	JobType string `json:"jobType"`
	Failed  int64  `json:"failed"`
	Ended   int64  `json:"ended"` // in any state
}

// FailedErrorCode has the failed jobs with a code.
type FailedErrorCode struct {
	ErrorCode string `json:"errorCode"` // empty: none, or one that is rare
	Failed    int64  `json:"failed"`
}
