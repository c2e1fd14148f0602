package telemetry

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/certtest"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

func TestMetricsHaveFewSeries(t *testing.T) {
	t.Parallel()
	function := rand.Text() // a run of events by itself
	m := NewMeter(function)
	m.Runs("v1")
	known, err := jobevent.New(jobevent.TypeCreated, jobevent.Meta{Function: "test", ID: "1"}, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	foreign := event.New()
	foreign.SetType("com.example.anything")
	m.Handled([]jobevent.Item{known, known, jobevent.ItemOf(foreign)}, time.Millisecond, nil)
	m.Handled([]jobevent.Item{known}, time.Millisecond, errors.New("away"))
	m.Published([]jobevent.Item{known}, time.Millisecond, nil)
	m.Published(nil, time.Millisecond, errors.New("away"))
	m.Ticked(time.Millisecond, errors.New("away"))
	m.Rejected(RejectedPanic)
	m.Refused(known)

	answer := httptest.NewRecorder()
	MetricsHandler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`jobweaver_build_info{function="counted",version="v1"} 1`,
		`jobweaver_events_handled_total{function="counted",type="io.jobweaver.job.created.v1"} 2`,
		`jobweaver_events_handled_total{function="counted",type="other"} 1`,
		`jobweaver_events_published_total{function="counted",type="io.jobweaver.job.created.v1"} 1`,
		`jobweaver_events_rejected_total{function="counted",reason="panic"} 1`,
		`jobweaver_events_refused_total{function="counted",type="io.jobweaver.job.created.v1"} 1`,
		`jobweaver_handle_errors_total{function="counted"} 1`,
		`jobweaver_handle_batch_events_sum{function="counted"} 4`,
		`jobweaver_publish_errors_total{function="counted"} 1`,
		`jobweaver_tick_errors_total{function="counted"} 1`,
	} {
		want = strings.ReplaceAll(want, "counted", function)
		if !strings.Contains(answer.Body.String(), want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(answer.Body.String(), "com.example") {
		t.Error("a foreign type became a label")
	}
}

func scrape(t *testing.T) string {
	t.Helper()
	answer := httptest.NewRecorder()
	MetricsHandler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatal(answer.Body)
	}
	return answer.Body.String()
}

func TestRequestsAreCountedByRouteMethodAndCode(t *testing.T) {
	t.Parallel()
	function := rand.Text()
	m := NewMeter(function)
	handler := m.Requests("/things/{id}", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/things/bad" {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	for _, path := range []string{"/things/1", "/things/2", "/things/bad"} {
		handler(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
	m.Request("BREW")(RouteUnknown, 999, false)
	m.Request(http.MethodGet)("/held", http.StatusOK, true)
	got := scrape(t)
	for _, want := range []string{
		`http_requests_total{code="200",function=%q,method="GET",route="/things/{id}"} 2`,
		`http_requests_total{code="400",function=%q,method="GET",route="/things/{id}"} 1`,
		`http_requests_total{code="0",function=%q,method="other",route="other"} 1`,
		`http_requests_total{code="200",function=%q,method="GET",route="/held"} 1`,
		`http_request_duration_seconds_count{function=%q,method="GET",route="/things/{id}"} 3`,
		`http_requests_in_flight{function=%q} 0`,
	} {
		if want = "jobweaver_" + fmt.Sprintf(want, function); !strings.Contains(got, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if held := fmt.Sprintf(`duration_seconds_count{function=%q,method="GET",route="/held"}`, function); strings.Contains(got, held) {
		t.Error("a held answer counts as a slow one")
	}
}

func TestPartsAreSummedAndOfReplicasTheHighestCounts(t *testing.T) {
	t.Parallel()
	function, queue := rand.Text(), rand.Text()
	m := NewMeter(function)
	for lag := range int64(3) {
		stop := m.WatchPartitions(func() []Partition { return []Partition{{Topic: "a", ID: 7, Lag: lag, Gap: 1, Next: 5 - lag, End: 5}} })
		defer stop()
	}
	for used := range int32(3) {
		defer m.WatchPool(func() Pool {
			return Pool{Database: function, Bytes: 100 + int64(used), Used: used, Limit: 4, Waited: time.Second}
		})()
		defer m.WatchReady(func() bool { return used == 1 })()
	}
	for n := range int64(3) {
		defer m.WatchJobs(func() (JobCounts, bool) {
			return JobCounts{AsOf: time.Unix(100, 0), Of: []JobCount{
				{State: "PENDING", Queue: queue, JobType: "A", N: 10 + n, Oldest: time.Now().Add(-time.Hour)},
			}}, true
		})()
		defer m.WatchQueues(func() *QueueFigures {
			return &QueueFigures{At: time.Now(), InFlight: map[string]int{queue: int(n)}, NoWorker: []NoWorker{{queue, "A", time.Duration(n) * time.Minute}}}
		})()
	}
	m.WatchQueues(func() *QueueFigures {
		return &QueueFigures{At: time.Now().Add(-time.Hour), InFlight: map[string]int{queue: 1000}}
	})
	got := scrape(t)
	for _, want := range []string{
		fmt.Sprintf(`consumer_lag_records{function=%q,partition="7",topic="a"} 3`, function),
		fmt.Sprintf(`consumer_committable_gap_records{function=%q,partition="7",topic="a"} 3`, function),
		fmt.Sprintf(`consumer_next_offset{function=%q,partition="7",topic="a"} 5`, function),
		fmt.Sprintf(`consumer_end_offset{function=%q,partition="7",topic="a"} 5`, function),
		fmt.Sprintf(`ready{function=%q} 1`, function),
		fmt.Sprintf(`database_size_bytes{database=%q} 102`, function),
		fmt.Sprintf(`database_connections{function=%q,state="used"} 3`, function),
		fmt.Sprintf(`database_connections_limit{function=%q} 12`, function),
		fmt.Sprintf(`database_acquire_wait_seconds_total{function=%q} 3`, function),
		fmt.Sprintf(`jobs{job_type="A",queue=%q,state="PENDING"} 12`, queue),
		fmt.Sprintf(`jobs_oldest_age_seconds{job_type="A",queue=%q,state="PENDING"} 3600`, queue),
		fmt.Sprintf(`attempts_in_flight{queue=%q} 2`, queue),
		fmt.Sprintf(`no_worker_seconds{job_type="A",queue=%q} 120`, queue),
	} {
		if !strings.Contains(got, "jobweaver_"+want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestTheExpiryOfACertificateThatIsRenewedIsExported(t *testing.T) {
	t.Parallel()
	setting := rand.Text()
	exported := func() string {
		return fmt.Sprintf("jobweaver_certificate_expiry_timestamp_seconds{setting=%q} ", setting)
	}
	for _, lives := range []time.Duration{time.Hour, 1000 * time.Hour} {
		ca := certtest.NewFor(t, lives)
		tlsfiles.NoteExpiry(setting, [][]byte{ca.DER()})
		_, after, found := strings.Cut(scrape(t), exported())
		line, _, _ := strings.Cut(after, "\n")
		at, err := strconv.ParseFloat(line, 64)
		if left := time.Until(time.Unix(int64(at), 0)); !found || err != nil || left > lives || left < lives-time.Minute {
			t.Errorf("%s is left of %s, %v", left, lives, err)
		}
	}
}

func TestWhoHasStoppedIsNotAskedAnyMore(t *testing.T) {
	t.Parallel()
	function := rand.Text()
	stop := NewMeter(function).WatchPool(func() Pool { return Pool{Limit: 1} })
	stop()
	if strings.Contains(scrape(t), `connections_limit{function="`+function) {
		t.Error("still exported")
	}
}

func TestAHundredNamesHaveSeriesOfTheirOwn(t *testing.T) {
	t.Parallel()
	some := names{most: 2}
	for _, c := range [][2]string{{"a", "a"}, {"b", "b"}, {"c", "other"}, {"a", "a"}, {"d", "other"}, {"b", "b"}} {
		if got := some.label(c[0]); got != c[1] {
			t.Errorf("%s is %s, want %s", c[0], got, c[1])
		}
	}
	if JobType("") != otherJobTypes {
		t.Error("a job without a type has a name")
	}
}

// The metrics that are always on cost a batch only a few additions and no memory.
func TestCountingABatchAllocatesNothing(t *testing.T) {
	m, events := NewMeter(rand.Text()), hundred(t)
	jobType := "A"
	for name, count := range map[string]func(){
		"handled":   func() { m.Handled(events, time.Millisecond, nil) },
		"published": func() { m.Published(events, time.Millisecond, nil) },
		"accepted":  func() { JobsAccepted("default", jobType, 100) },
		"moved":     func() { JobTransitions(jobType, "COMPLETED", 100) },
		"commit":    func() { m.Committed(time.Millisecond) },
	} {
		if n := testing.AllocsPerRun(100, count); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { m.Request(http.MethodPost)("/api/jobs", 202, false) }); n > 1 {
		t.Errorf("a request: %v allocations", n) // the function that records the answer
	}
}

func BenchmarkABatchOfAHundredEvents(b *testing.B) {
	m, events := NewMeter("benchmark"), hundred(b)
	b.ReportAllocs()
	for b.Loop() {
		m.Handled(events, time.Millisecond, nil)
		m.Published(events, time.Millisecond, nil)
		JobTransitions("A", "COMPLETED", len(events))
	}
}

func hundred(t testing.TB) []jobevent.Item {
	t.Helper()
	events := make([]jobevent.Item, 100)
	for i := range events {
		typ := jobevent.TypeCompleted
		if i >= 50 {
			typ = jobevent.TypeFailed
		}
		e, err := jobevent.New(typ, jobevent.Meta{Function: "test", ID: fmt.Sprint(i)}, struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		events[i] = e
	}
	return events
}
