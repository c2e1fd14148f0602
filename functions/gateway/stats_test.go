package gateway_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

type statsBody struct {
	AsOf          *time.Time
	Jobs          map[string]int
	Types         []struct{ JobType string }
	OldestWaiting *struct {
		JobID uuid.UUID
		AgeMs int64
	}
	Throughput struct {
		PerSecond            map[string]map[string]float64
		Minutes, Hours, Days []struct {
			At                          time.Time
			Accepted, Completed, Failed int
		}
	}
	Failures map[string]struct {
		JobTypes   []struct{ Failed, Ended int }
		ErrorCodes []struct {
			ErrorCode *string
			Failed    int
		}
	}
	Latency map[string]struct {
		Run struct {
			Count int
			P50Ms *float64

			Histogram []struct {
				UpToMs float64
				Jobs   int
			}
		}
	}
}

func (h *fixture) stats(query string) (s statsBody) {
	h.t.Helper()
	h.get("/api/stats" + query).want(http.StatusOK).into(&s)
	return s
}

func TestStatisticsCountJobs(t *testing.T) {
	t.Parallel()
	h := open(t)
	first, second := h.submit(plainJob), h.submit(plainJob)
	h.submit(`{"jobType": "MAIL", "payload": 1}`)
	started := time.Now()
	finished := started.Add(100 * time.Millisecond)
	h.scheduler(second, 1, jobstate.Completed, func(s *jobevent.Status) {
		s.Attempt, s.StartedAt, s.FinishedAt = 1, &started, &finished
	})
	h.stop() // stores the count of accepted jobs
	all := h.stats("")
	if all.AsOf == nil || all.Jobs["PENDING"] != 2 || all.Jobs["COMPLETED"] != 1 || all.Jobs["FAILED"] != 0 || len(all.Types) != 2 {
		t.Errorf("counts %+v", all)
	}
	if all.OldestWaiting == nil || all.OldestWaiting.JobID != first {
		t.Errorf("the oldest is %+v, not %s", all.OldestWaiting, first)
	}
	flow := all.Throughput
	if len(flow.Minutes) != 60 || len(flow.Hours) != 24 || len(flow.Days) != 30 || flow.Days[29].Accepted+flow.Days[28].Accepted != 3 ||
		flow.PerSecond["1h"]["completed"] == 0 {
		t.Errorf("throughput %+v", flow)
	}
	if run := all.Latency["5m"].Run; run.Count != 1 || *run.P50Ms < 90 || *run.P50Ms > 110 {
		t.Errorf("latency %+v", run)
	}
	for _, span := range []string{"1h", "24h", "30d"} {
		if run := all.Latency[span].Run; run.Count != 1 || len(all.Failures[span].JobTypes) != 0 {
			t.Errorf("of %s: latency %+v, failures %+v", span, run, all.Failures[span])
		}
	}
	if mail := h.stats("?type=MAIL&queue=default"); mail.Jobs["PENDING"] != 1 || mail.Jobs["COMPLETED"] != 0 ||
		mail.Latency["1h"].Run.P50Ms != nil {
		t.Errorf("of e-mails %+v", mail)
	}
	for _, query := range []string{"?type=SIMULATION", "?queue=default"} {
		bars := h.stats(query).Latency["1h"].Run.Histogram
		if len(bars) != 1 || bars[0].UpToMs != 131.072 || bars[0].Jobs != 1 || all.Latency["1h"].Run.Histogram != nil {
			t.Errorf("%s: the histogram %+v, of all jobs %+v", query, bars, all.Latency["1h"].Run.Histogram)
		}
	}
	h.get("/api/stats?x=1").wantError(apierror.InvalidJobRequest, "x")
}

func TestStatisticsListTheMostFrequentFailures(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, code := range []string{"X", "Y", "X", ""} {
		h.scheduler(h.submit(plainJob), 1, jobstate.Failed, func(s *jobevent.Status) {
			if code != "" {
				s.LastError = &jobevent.Error{ErrorCode: code, Message: "no"}
			}
		})
	}
	h.scheduler(h.submit(plainJob), 1, jobstate.Completed, func(*jobevent.Status) {})
	s := h.stats("")
	for _, span := range []string{"1h", "24h", "30d"} {
		types, codes := s.Failures[span].JobTypes, s.Failures[span].ErrorCodes
		if len(types) != 1 || types[0].Failed != 4 || types[0].Ended != 5 {
			t.Errorf("of %s: %+v", span, types)
		}
		if len(codes) != 3 || *codes[0].ErrorCode != "X" || codes[0].Failed != 2 || *codes[1].ErrorCode != "Y" ||
			codes[2].ErrorCode != nil || codes[2].Failed != 1 {
			t.Errorf("of %s: %+v", span, codes)
		}
	}
	if s := h.stats("?type=MAIL"); len(s.Failures["1h"].JobTypes)+len(s.Failures["1h"].ErrorCodes) != 0 {
		t.Errorf("of e-mails %+v", s.Failures)
	}
}

// What the statistics count of a window is what the list has by the window's begin, at its edges, too.
func TestTheListByTheEndHasWhatTheStatisticsCount(t *testing.T) {
	t.Parallel()
	h := open(t)
	n := 0
	for of, spans := range map[time.Duration]time.Duration{time.Minute: 59, time.Hour: 23, 24 * time.Hour: 29} {
		edge := time.Now().Truncate(of).Add(-spans * of)
		for _, off := range []time.Duration{-time.Minute, -time.Millisecond, 0, time.Millisecond, of, of + time.Millisecond} {
			var id uuid.UUID // accepted long before its end
			h.sql(`insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, created_at)
				values (uuidv7(-interval '60 days'), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', gen_random_uuid(), 'PENDING', now() - interval '60 days')
				returning job_id`, &id)
			ended := edge.Add(off)
			h.scheduler(id, 1, []jobstate.Status{jobstate.Failed, jobstate.Completed}[n%2], func(s *jobevent.Status) { s.FinishedAt = &ended })
			h.scheduler(id, 2, []jobstate.Status{jobstate.Failed, jobstate.Completed}[n%2], func(s *jobevent.Status) {
				s.FinishedAt = &ended // a command was refused
			})
			n++
		}
	}
	listed := func(status string, since time.Time) int {
		var page struct {
			Jobs []struct{ FinishedAt time.Time }
		}
		h.get("/api/jobs?limit=200&status=" + status + "&endedSince=" + since.Format(time.RFC3339Nano)).want(http.StatusOK).into(&page)
		return len(page.Jobs)
	}
	all := h.stats("")
	for span, flows := range map[string][]struct {
		At                          time.Time
		Accepted, Completed, Failed int
	}{"1h": all.Throughput.Minutes, "24h": all.Throughput.Hours, "30d": all.Throughput.Days} {
		completed, failed := 0, 0
		for _, flow := range flows {
			completed, failed = completed+flow.Completed, failed+flow.Failed
		}
		since := flows[0].At
		if c, f := listed("COMPLETED", since), listed("FAILED", since); c != completed || f != failed || c == 0 || f == 0 {
			t.Errorf("%s: %d and %d ended, of which the list has %d and %d", span, completed, failed, c, f)
		}
		types := all.Failures[span].JobTypes
		if len(types) != 1 || types[0].Failed != failed || types[0].Ended != failed+completed {
			t.Errorf("%s: failures %+v, and %d ended and %d failed", span, types, completed+failed, failed)
		}
	}
}

func TestStatisticsOfAnEmptyInstallation(t *testing.T) {
	t.Parallel()
	h := open(t)
	if s := h.stats(""); s.AsOf == nil || s.Jobs["PENDING"] != 0 || s.OldestWaiting != nil || len(s.Types) != 0 {
		t.Errorf("got %+v", s)
	}
}
