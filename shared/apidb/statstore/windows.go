package statstore

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/idtime"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// statsBuilder makes statistics from tallies and a census.
type statsBuilder struct {
	Stats
	minutes []Flow    // 61: the rates need a part of the minute before
	windows [4]window // minutes5, hour, day, month
}

const (
	minutes5 = iota
	hour
	day
	month
)

// window sums up what ended since an instant.
type window struct {
	since  time.Time
	times  tally // with the error codes
	failed map[string]FailedType
}

func newStatsBuilder(at time.Time) *statsBuilder {
	at = at.UTC()
	b := &statsBuilder{
		Stats: Stats{
			At: at, Total: Counts{}, Types: map[string]Counts{}, Queues: map[string]Counts{}, Pending: map[TypeOfQueue]int64{},
		},
		minutes: flows(at, time.Minute, 61),
	}
	b.Hours, b.Days = flows(at, time.Hour, 24), flows(at, 24*time.Hour, 30)
	for i, since := range []time.Time{b.minutes[55].At, b.minutes[1].At, b.Hours[0].At, b.Days[0].At} {
		b.windows[i] = window{since: since, failed: map[string]FailedType{}}
	}
	return b
}

// flows returns n empty flows, the last of which is the current one.
func flows(at time.Time, of time.Duration, n int) []Flow {
	spans := make([]Flow, n)
	for i := range spans {
		spans[i].At = at.Truncate(of).Add(-time.Duration(n-1-i) * of)
	}
	return spans
}

func (b *statsBuilder) addTally(row *gen.TalliesOfRow) {
	addFlow(b.minutes, time.Minute, row)
	addFlow(b.Hours, time.Hour, row)
	addFlow(b.Days, 24*time.Hour, row)
	var of tally
	of.add(0, 0, row.Waited, row.Ran, row.Took, row.ErrorCodes)
	of.addEntry(row.Times, row.Codes)
	for i := range b.windows {
		if w := &b.windows[i]; !row.At.Before(w.since) {
			w.times.addAll(&of)
			w.addEnded(row)
		}
	}
}

func (w *window) addEnded(row *gen.TalliesOfRow) {
	if row.What == accepted || row.N == 0 {
		return
	}
	of := w.failed[row.JobType]
	of.JobType, of.Ended = row.JobType, of.Ended+row.N
	if row.What == string(jobstate.Failed) {
		of.Failed += row.N
	}
	w.failed[row.JobType] = of
}

// mostFailures is how many job types and error codes are listed.
const mostFailures = 10

func (w *window) failures() (f Failures) {
	for _, code := range w.times.codes.ranked() {
		f.Codes = append(f.Codes, FailedCode{code, w.times.codes[code]})
	}
	slices.SortStableFunc(f.Codes, func(a, b FailedCode) int { return cmp.Compare(b.Failed, a.Failed) })
	for _, of := range w.failed {
		if of.Failed > 0 {
			f.Types = append(f.Types, of)
		}
	}
	slices.SortFunc(f.Types, func(a, b FailedType) int {
		return cmp.Or(cmp.Compare(b.Failed, a.Failed), cmp.Compare(a.JobType, b.JobType))
	})
	f.Codes, f.Types = f.Codes[:min(len(f.Codes), mostFailures)], f.Types[:min(len(f.Types), mostFailures)]
	return f
}

// addFlow enters a tally into its span. A tally of an hour cannot be divided into minutes.
func addFlow(spans []Flow, of time.Duration, row *gen.TalliesOfRow) {
	i := int(row.At.UTC().Truncate(of).Sub(spans[0].At) / of)
	if row.N == 0 || row.At.Before(spans[0].At) || i >= len(spans) {
		return
	}
	for _, grain := range grains {
		if grain.name == row.Grain && grain.of > of {
			return
		}
	}
	switch span := &spans[i]; row.What {
	case accepted:
		span.Accepted += row.N
	case string(jobstate.Completed):
		span.Completed += row.N
	case string(jobstate.Failed):
		span.Failed += row.N
	case string(jobstate.Cancelled):
		span.Cancelled += row.N
	}
}

func (b *statsBuilder) addCount(c *jobCount) {
	b.count(c.Queue, c.JobType, c.Status, c.N)
	if c.Status == jobstate.Pending {
		b.Pending[TypeOfQueue{c.Queue, c.JobType}] += c.N
	}
	if c.Status != jobstate.Pending && c.Status != jobstate.Retrying {
		return
	}
	if at, known := idtime.Of(c.Oldest); known && (b.Oldest == nil || bytes.Compare(c.Oldest[:], b.Oldest[:]) < 0) {
		b.Oldest, b.OldestAt = &c.Oldest, at
	}
}

func (b *statsBuilder) count(queue, jobType string, status jobstate.Status, n int64) {
	if b.Types[jobType] == nil {
		b.Types[jobType] = Counts{}
	}
	if b.Queues[queue] == nil {
		b.Queues[queue] = Counts{}
	}
	b.Total[status] += n
	b.Types[jobType][status] += n
	b.Queues[queue][status] += n
}

func (b *statsBuilder) done() Stats {
	b.Minutes = b.minutes[1:]
	b.Minute1, b.Minutes5, b.Hour1 = b.rates(1), b.rates(5), b.rates(60)
	b.Latency5 = b.windows[minutes5].latency()
	b.Latencies = BySpan[Latency]{b.windows[hour].latency(), b.windows[day].latency(), b.windows[month].latency()}
	b.Failures = BySpan[Failures]{b.windows[hour].failures(), b.windows[day].failures(), b.windows[month].failures()}
	return b.Stats
}

// rates returns the rates over the last n minutes; the first minute counts in part.
func (b *statsBuilder) rates(n int) Rates {
	var r Rates
	gone := b.At.Sub(b.At.Truncate(time.Minute)).Minutes() // of the current minute
	spans := b.minutes[len(b.minutes)-n-1:]
	for i, span := range spans {
		part := 1.0
		if i == 0 {
			part = 1 - gone
		}
		part /= float64(n) * 60
		r.Accepted += part * float64(span.Accepted)
		r.Completed += part * float64(span.Completed)
		r.Failed += part * float64(span.Failed)
		r.Cancelled += part * float64(span.Cancelled)
	}
	return r
}

func (w *window) latency() Latency {
	return Latency{Waited: percentiles(w.times.waited), Ran: percentiles(w.times.ran), Took: percentiles(w.times.took)}
}

func percentiles(h histogram) Percentiles {
	return Percentiles{
		Count: h.count(), P50: h.quantile(0.5), P95: h.quantile(0.95), P99: h.quantile(0.99), Bars: h.bars(),
	}
}
