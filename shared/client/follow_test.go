package client_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jobweaver/jobweaver/shared/client"
)

// streaming is a gateway with one job: each connection to its stream sends the next of some texts and ends, or stays
// open after the last one.
type streaming struct {
	*httptest.Server
	status   atomic.Value // of the job
	asked    atomic.Int32 // for the job
	streamed atomic.Int32
}

func newStreaming(t *testing.T, texts ...func(*streaming) string) *streaming {
	t.Helper()
	s := &streaming{}
	s.status.Store("PENDING")
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/stream" {
			s.asked.Add(1)
			_, _ = fmt.Fprintf(w, `{"jobId": "j1", "status": %q, "payload": 1}`, s.status.Load())
			return
		}
		if r.URL.RawQuery != "jobId=j1" || r.Header.Get("Authorization") != "Bearer the key" {
			t.Errorf("asked for %s, %v", r.URL, r.Header)
		}
		n := int(s.streamed.Add(1)) - 1
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": begin\n\n"+texts[n](s))
		_ = http.NewResponseController(w).Flush()
		if n == len(texts)-1 {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func sends(status string) string {
	return fmt.Sprintf("id: a-1\nevent: job\ndata: {\"jobId\": \"j1\", \"status\": %q}\n\n", status)
}

func (s *streaming) follow(t *testing.T) (job *client.Job, seen []string) {
	t.Helper()
	job, err := client.Follow(t.Context(), client.New(s.URL, "the key"), "j1", func(job *client.Job) {
		seen = append(seen, job.Status)
	})
	if err != nil {
		t.Fatal(err)
	}
	return job, seen
}

func TestAJobIsFollowedByItsStream(t *testing.T) {
	t.Parallel()
	s := newStreaming(t, func(s *streaming) string {
		s.status.Store("COMPLETED")
		return sends("PENDING") + sends("QUEUED") + "event: progress\ndata: {}\n\n" + sends("RUNNING") + "event: job\r\ndata: {\"status\":\r\ndata: \"COMPLETED\"}\r\n\r\n"
	})
	job, seen := s.follow(t)
	if want := []string{"PENDING", "QUEUED", "RUNNING", "COMPLETED"}; !slices.Equal(seen, want) {
		t.Errorf("seen %v", seen)
	}
	if s.asked.Load() != 2 || !strings.Contains(string(job.Raw), "payload") {
		t.Errorf("asked %d times, the job is %s", s.asked.Load(), job.Raw)
	}
}

func TestAJobIsLookedAtAfterItsStreamEnded(t *testing.T) {
	t.Parallel()
	s := newStreaming(t, func(*streaming) string { return sends("RUNNING") + "event: job\ndata: {" }, func(s *streaming) string {
		s.status.Store("FAILED")
		return "event: reload\ndata: {}\n\n"
	})
	if job, _ := s.follow(t); job.Status != "FAILED" || s.streamed.Load() != 2 {
		t.Errorf("%s after %d streams", job.Status, s.streamed.Load())
	}
}

// An older gateway has no stream, and a proxy may answer with a page.
func TestAJobIsFollowedWithoutAStream(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusNotFound, http.StatusTooManyRequests, http.StatusForbidden} {
		asked, streamed := 0, 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api/stream" {
				streamed++
				w.WriteHeader(status)
				return
			}
			if asked++; asked < 3 {
				_, _ = io.WriteString(w, `{"jobId": "j1", "status": "RUNNING"}`)
				return
			}
			_, _ = io.WriteString(w, `{"jobId": "j1", "status": "CANCELLED"}`)
		}))
		job, err := client.Follow(t.Context(), client.New(server.URL, ""), "j1", func(*client.Job) {})
		server.Close()
		if err != nil || job.Status != "CANCELLED" || streamed != 1 {
			t.Errorf("%d: %+v, %v after %d streams", status, job, err, streamed)
		}
	}
}
