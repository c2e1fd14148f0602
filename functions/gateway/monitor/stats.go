package monitor

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// Statistics is the response with statistics.
type Statistics struct {
	At            time.Time               `json:"at"`
	AsOf          *time.Time              `json:"asOf"`
	Jobs          countsBody              `json:"jobs"`
	Types         []typeCounts            `json:"types"`
	Queues        []queueCounts           `json:"queues"`
	OldestWaiting *oldestBody             `json:"oldestWaiting"`
	Throughput    throughputBody          `json:"throughput"`
	Latency       map[string]latency      `json:"latency"`
	Failures      map[string]failuresBody `json:"failures"`
}

type countsBody map[jobstate.Status]int64

type typeCounts struct {
	JobType string     `json:"jobType"`
	Jobs    countsBody `json:"jobs"`
}

type queueCounts struct {
	Queue string     `json:"queue"`
	Jobs  countsBody `json:"jobs"`
}

type oldestBody struct {
	JobID     uuid.UUID `json:"jobId"`
	CreatedAt time.Time `json:"createdAt"`
	AgeMs     int64     `json:"ageMs"`
}

type throughputBody struct {
	PerSecond map[string]ratesBody `json:"perSecond"`
	Minutes   []flowBody           `json:"minutes"`
	Hours     []flowBody           `json:"hours"`
	Days      []flowBody           `json:"days"`
}

type ratesBody struct {
	Accepted  float64 `json:"accepted"`
	Completed float64 `json:"completed"`
	Failed    float64 `json:"failed"`
	Cancelled float64 `json:"cancelled"`
}

type flowBody struct {
	At        time.Time `json:"at"`
	Accepted  int64     `json:"accepted"`
	Completed int64     `json:"completed"`
	Failed    int64     `json:"failed"`
	Cancelled int64     `json:"cancelled"`
}

type latency struct {
	AcceptToStart percentiles `json:"acceptToStart"`
	Run           percentiles `json:"run"`
	AcceptToEnd   percentiles `json:"acceptToEnd"`
}

type failuresBody struct {
	JobTypes   []failedTypeBody `json:"jobTypes"`
	ErrorCodes []failedCodeBody `json:"errorCodes"`
}

type failedTypeBody struct {
	JobType string `json:"jobType"`
	Failed  int64  `json:"failed"`
	Ended   int64  `json:"ended"`
}

type failedCodeBody struct {
	ErrorCode *string `json:"errorCode"`
	Failed    int64   `json:"failed"`
}

type percentiles struct {
	Count int64    `json:"count"`
	P50Ms *float64 `json:"p50Ms"`
	P95Ms *float64 `json:"p95Ms"`
	P99Ms *float64 `json:"p99Ms"`

	Histogram []bar `json:"histogram,omitempty"` // only of a queue or a job type
}

type bar struct {
	UpToMs float64 `json:"upToMs"`
	Jobs   int64   `json:"jobs"`
}

// GetStats is GET /api/stats.
func (a *API) GetStats(c *gin.Context) error {
	q := edge.NewQuery(c)
	queue, jobType := q.One("queue"), q.Checked("type", apibody.CheckJobType)
	if err := q.Close("queue", "type"); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	stats, err := a.Stats.Get(ctx, edge.OwnerOf(c), queue, jobType)
	if err != nil {
		return err
	}
	body := NewStats(&stats)
	if queue != "" || jobType != "" {
		body.addHistograms(&stats)
	}
	return edge.Answer(c, http.StatusOK, body)
}

// addHistograms adds the histograms. Statistics of everything, which each overview reads and streams every few seconds,
// have none.
func (s *Statistics) addHistograms(of *statstore.Stats) {
	l := of.Latencies
	for window, from := range map[string]statstore.Latency{"5m": of.Latency5, "1h": l.Hour, "24h": l.Day, "30d": l.Month} {
		to := s.Latency[window]
		to.AcceptToStart.Histogram, to.Run.Histogram = newHistogram(from.Waited), newHistogram(from.Ran)
		to.AcceptToEnd.Histogram = newHistogram(from.Took)
		s.Latency[window] = to
	}
}

func newHistogram(of statstore.Percentiles) []bar {
	bars := make([]bar, len(of.Bars))
	for i, b := range of.Bars {
		bars[i] = bar{UpToMs: float64(b.UpTo.Microseconds()) / 1000, Jobs: b.Count}
	}
	return bars
}

// NewStats converts statistics for a response.
func NewStats(s *statstore.Stats) Statistics {
	body := Statistics{
		At: s.At, AsOf: jobview.UTC(s.AsOf), Jobs: newCounts(s.Total), Types: []typeCounts{}, Queues: []queueCounts{},
		Throughput: throughputBody{
			PerSecond: map[string]ratesBody{
				"1m": ratesBody(s.Minute1), "5m": ratesBody(s.Minutes5), "1h": ratesBody(s.Hour1),
			},
			Minutes: newFlows(s.Minutes), Hours: newFlows(s.Hours), Days: newFlows(s.Days),
		},
		Latency:  bySpan(s.Latencies, newLatency),
		Failures: bySpan(s.Failures, newFailures),
	}
	body.Latency["5m"] = newLatency(s.Latency5)
	for _, jobType := range slices.Sorted(maps.Keys(s.Types)) {
		body.Types = append(body.Types, typeCounts{JobType: jobType, Jobs: newCounts(s.Types[jobType])})
	}
	for _, queue := range slices.Sorted(maps.Keys(s.Queues)) {
		body.Queues = append(body.Queues, queueCounts{Queue: queue, Jobs: newCounts(s.Queues[queue])})
	}
	if s.Oldest != nil && s.AsOf != nil {
		body.OldestWaiting = &oldestBody{
			JobID: *s.Oldest, CreatedAt: s.OldestAt.UTC(), AgeMs: max(s.AsOf.Sub(s.OldestAt), 0).Milliseconds(),
		}
	}
	return body
}

// newCounts has an entry for every status.
func newCounts(of statstore.Counts) countsBody {
	counts := countsBody{}
	for _, status := range jobstate.All() {
		counts[status] = of[status]
	}
	return counts
}

func newFlows(of []statstore.Flow) []flowBody {
	flows := make([]flowBody, len(of))
	for i, flow := range of {
		flows[i] = flowBody(flow)
	}
	return flows
}

func bySpan[From, To any](of statstore.BySpan[From], newOne func(From) To) map[string]To {
	return map[string]To{"1h": newOne(of.Hour), "24h": newOne(of.Day), "30d": newOne(of.Month)}
}

func newFailures(of statstore.Failures) failuresBody {
	body := failuresBody{
		JobTypes: make([]failedTypeBody, len(of.Types)), ErrorCodes: make([]failedCodeBody, len(of.Codes)),
	}
	for i, failed := range of.Types {
		body.JobTypes[i] = failedTypeBody(failed)
	}
	for i, failed := range of.Codes {
		body.ErrorCodes[i].Failed = failed.Failed
		if failed.Code != "" {
			body.ErrorCodes[i].ErrorCode = &of.Codes[i].Code
		}
	}
	return body
}

func newLatency(of statstore.Latency) latency {
	return latency{
		AcceptToStart: newPercentiles(of.Waited), Run: newPercentiles(of.Ran), AcceptToEnd: newPercentiles(of.Took),
	}
}

// newPercentiles returns nulls if there were no jobs.
func newPercentiles(of statstore.Percentiles) percentiles {
	if of.Count == 0 {
		return percentiles{}
	}
	ms := func(d time.Duration) *float64 {
		f := float64(d.Microseconds()) / 1000
		return &f
	}
	return percentiles{Count: of.Count, P50Ms: ms(of.P50), P95Ms: ms(of.P95), P99Ms: ms(of.P99)}
}
