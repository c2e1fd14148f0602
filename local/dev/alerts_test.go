package dev_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// A notice of an alert goes the whole way: from jobs that fail, by the tallies of projection, the clock of cron and a
// job of type ALERT, to a receiver that refuses the first one.
func TestAnAlertReachesItsReceiver(t *testing.T) {
	t.Parallel()
	got, refused := make(chan jobspec.Notice, 100), false
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !refused { // requests come one after another
			refused = true
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var body jobspec.Notice
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		got <- body
	}))
	t.Cleanup(receiver.Close)
	next := func(want jobspec.NoticeState, failed int64) {
		t.Helper()
		select {
		case n := <-got:
			if n.State != want || n.Failed != failed || n.Alert != "broken" {
				t.Fatalf("the receiver got %+v, not %s", n, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("no notice %s came", want)
		}
	}
	err := dev.Run(t.Context(), options(t, newFolder(t)), func(ctx context.Context, at string) error {
		c := client.New(at, "")
		do := func(method, path, body string) {
			t.Helper()
			if _, err := c.Do(ctx, method, path, "application/json", []byte(body), nil); err != nil {
				t.Fatal(err)
			}
		}
		to := `, "errorCode": "A.BROKEN", "to": {"webhook": "` + receiver.URL + `/notices"}}`
		do(http.MethodPost, "/api/alerts", `{"name": "broken", "failures": 2`+to)
		do(http.MethodPost, "/api/alerts/broken/test", "")
		next(jobspec.NoticeTest, 0)
		for range 2 {
			do(http.MethodPost, "/api/jobs", `{"jobType": "SIMULATION",
				"payload": {"steps": [{"type": "FAIL", "errorCode": "A.BROKEN", "retryable": false}]}}`)
		}
		next(jobspec.NoticeFiring, 2)
		do(http.MethodPut, "/api/alerts/broken", `{"failures": 3`+to)
		next(jobspec.NoticeResolved, 2)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
