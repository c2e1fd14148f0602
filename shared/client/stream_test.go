package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

func events(text string) func() (*http.Response, error) {
	return answer(http.StatusOK, ": begin\n\n"+text, "Content-Type", "text/event-stream; charset=utf-8")
}

func TestAStreamGoesOnAfterItsLastEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript(
			events("id: a-1\nevent: job\ndata: {\"jobId\": \"j1\",\ndata: \"status\": \"RUNNING\"}\n\nevent: progress\ndata: {\"jobId\": \"j1\", \"percent\": 40}\n\n"+
				"id: a-2\nevent: log\ndata: {\"jobId\": \"j1\", \"logs\": [{\"text\": \"hi\"}]}\n\nid: a-3\nevent: job\ndata: {"),
			breaks("read"), answer(http.StatusServiceUnavailable, ""), answer(http.StatusTooManyRequests, "", "Retry-After", "2"),
			events("id: b-9\r\nevent: reload\r\ndata: {}\r\n\r\nevent: unknown\ndata: 1\n\n"),
		)
		var seen []string
		for e, err := range s.client().Stream(t.Context(), client.Filter{Status: []string{"RUNNING", "FAILED"}, Queue: "mail"}) {
			if err != nil {
				t.Fatal(err)
			}
			text := e.Name + " " + e.ID
			switch {
			case e.Job != nil:
				text += e.Job.JobID + e.Job.Status
			case e.Progress != nil && e.Progress.Percent == 40:
				text += "40 %"
			case e.Log != nil:
				text += e.Log.Logs[0].Text
			}
			if seen = append(seen, text); e.Name == "unknown" {
				break
			}
		}
		if got := strings.Join(seen, ", "); got != "job a-1j1RUNNING, progress 40 %, log a-2hi, reload b-9, unknown " {
			t.Errorf("seen %s", got)
		}
		for i, want := range []string{"", "a-2", "a-2", "a-2", "a-2"} {
			if got := s.asked[i].Header.Get("Last-Event-ID"); got != want {
				t.Errorf("connection %d goes on after %q, not %q", i, got, want)
			}
		}
		if q := s.asked[0].URL.RawQuery; q != "queue=mail&status=RUNNING&status=FAILED" {
			t.Errorf("asked for %s", q)
		}
	})
}

// quiet is a stream that has only heartbeats for ten minutes, the last of them with an id.
func quiet(id string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		heartbeats, gateway := io.Pipe()
		go func() {
			defer gateway.Close()
			for n := range 40 {
				fmt.Fprintf(gateway, ": nothing new\nid: %s\n\n", strings.Repeat("x", 39-n)+id)
				<-time.After(15 * time.Second) // of the bubble's clock
			}
		}()
		res, err := answer(http.StatusOK, "", "Content-Type", "text/event-stream")()
		res.Body = heartbeats
		return res, err
	}
}

func TestAQuietStreamGoesOnAfterItsPlaceAndForAsLongAsAnyOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript(quiet("a-4"), breaks("dial"), quiet("a-5"), breaks("dial"),
			events("id: a-7\nevent: reload\ndata: {}\n\n"))
		for e, err := range s.client().StreamJob(t.Context(), "j1") {
			if err != nil || e.Name != client.EventReload {
				t.Errorf("it has %+v, %v", e, err)
			}
			break
		}
		for i, want := range []string{"", "a-4", "a-4", "a-5", "a-5"} {
			if got := s.asked[i].Header.Get("Last-Event-ID"); got != want {
				t.Errorf("connection %d goes on after %q, not %q", i, got, want)
			}
		}
	})
}

func TestAStreamEndsWithARefusalAndWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript(answer(http.StatusNotFound, `{"errorCode": "API.JOB_NOT_FOUND"}`))
		times := 0
		for _, err := range s.client().StreamJob(t.Context(), "j1") {
			if times++; !errors.Is(err, client.ErrNotFound) {
				t.Errorf("ended with %v", err)
			}
		}
		if times != 1 || len(s.asked) != 1 {
			t.Errorf("%d results of %d requests", times, len(s.asked))
		}
		ctx, cancel := context.WithCancel(t.Context())
		open := newScript(func() (*http.Response, error) {
			cancel()
			return nil, io.ErrUnexpectedEOF
		})
		for _, err := range open.client().Stream(ctx, client.Filter{}) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
		}
	})
}

func TestAStreamThatIsAwayForTooLongEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript(breaks("dial"))
		for _, err := range s.client().Stream(t.Context(), client.Filter{}) {
			if !client.Unreached(err) || len(s.asked) < 20 {
				t.Errorf("ended with %v after %d connections", err, len(s.asked))
			}
		}
	})
}
