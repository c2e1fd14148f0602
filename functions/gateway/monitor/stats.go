package monitor

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// Statistics is the response with statistics.
type Statistics struct {
	client.Stats

	Failures map[string]failuresBody `json:"failures"` // with null for no error code
}

type failuresBody struct {
	JobTypes   []client.FailedJobType `json:"jobTypes"`
	ErrorCodes []failedCodeBody       `json:"errorCodes"`
}

type failedCodeBody struct {
	ErrorCode *string `json:"errorCode"`
	Failed    int64   `json:"failed"`
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

func newHistogram(of statstore.Percentiles) []client.HistogramBar {
	bars := make([]client.HistogramBar, len(of.Bars))
	for i, b := range of.Bars {
		bars[i] = client.HistogramBar{UpToMs: float64(b.UpTo.Microseconds()) / 1000, Jobs: b.Count}
	}
	return bars
}

// NewStats converts statistics for a response.
func NewStats(s *statstore.Stats) Statistics {
	body := Statistics{Failures: bySpan(s.Failures, newFailures), Stats: client.Stats{
		At: s.At, AsOf: jobview.UTC(s.AsOf), Jobs: newCounts(s.Total),
		Types: []client.TypeStats{}, Queues: []client.QueueStats{},
		Throughput: client.Throughput{
			PerSecond: map[string]client.Rates{
				"1m": client.Rates(s.Minute1), "5m": client.Rates(s.Minutes5), "1h": client.Rates(s.Hour1),
			},
			Minutes: newFlows(s.Minutes), Hours: newFlows(s.Hours), Days: newFlows(s.Days),
		},
		Latency: bySpan(s.Latencies, newLatency),
	}}
	body.Latency["5m"] = newLatency(s.Latency5)
	for _, jobType := range slices.Sorted(maps.Keys(s.Types)) {
		body.Types = append(body.Types, client.TypeStats{JobType: jobType, Jobs: newCounts(s.Types[jobType])})
	}
	for _, queue := range slices.Sorted(maps.Keys(s.Queues)) {
		body.Queues = append(body.Queues, client.QueueStats{Queue: queue, Jobs: newCounts(s.Queues[queue])})
	}
	if s.Oldest != nil && s.AsOf != nil {
		body.OldestWaiting = &client.OldestWaiting{
			JobID: s.Oldest.String(), CreatedAt: s.OldestAt.UTC(), AgeMs: max(s.AsOf.Sub(s.OldestAt), 0).Milliseconds(),
		}
	}
	return body
}

// newCounts has an entry for every status.
func newCounts(of statstore.Counts) map[string]int64 {
	counts := map[string]int64{}
	for _, status := range jobstate.All() {
		counts[string(status)] = of[status]
	}
	return counts
}

func newFlows(of []statstore.Flow) []client.Span {
	flows := make([]client.Span, len(of))
	for i, flow := range of {
		flows[i] = client.Span(flow)
	}
	return flows
}

func bySpan[From, To any](of statstore.BySpan[From], newOne func(From) To) map[string]To {
	return map[string]To{"1h": newOne(of.Hour), "24h": newOne(of.Day), "30d": newOne(of.Month)}
}

func newFailures(of statstore.Failures) failuresBody {
	body := failuresBody{
		JobTypes: make([]client.FailedJobType, len(of.Types)), ErrorCodes: make([]failedCodeBody, len(of.Codes)),
	}
	for i, failed := range of.Types {
		body.JobTypes[i] = client.FailedJobType(failed)
	}
	for i, failed := range of.Codes {
		body.ErrorCodes[i].Failed = failed.Failed
		if failed.Code != "" {
			body.ErrorCodes[i].ErrorCode = &of.Codes[i].Code
		}
	}
	return body
}

func newLatency(of statstore.Latency) client.Latency {
	return client.Latency{
		AcceptToStart: newPercentiles(of.Waited), Run: newPercentiles(of.Ran), AcceptToEnd: newPercentiles(of.Took),
	}
}

// newPercentiles returns nulls if there were no jobs.
func newPercentiles(of statstore.Percentiles) client.Percentiles {
	if of.Count == 0 {
		return client.Percentiles{}
	}
	ms := func(d time.Duration) *float64 {
		f := float64(d.Microseconds()) / 1000
		return &f
	}
	return client.Percentiles{Count: of.Count, P50Ms: ms(of.P50), P95Ms: ms(of.P95), P99Ms: ms(of.P99)}
}
