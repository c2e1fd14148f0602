package dev_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/pullwire"
)

// A pull worker runs a job, one that is snoozed and comes again, one that waits for an outside system, and one that
// is cancelled.
func TestPullWorkersRunJobs(t *testing.T) {
	t.Parallel()
	o := options(t, newFolder(t))
	o.Queues, o.JobTypes = []string{"default", "pull"}, []string{"RESIZE", "RARE"}
	err := dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		p := &pulls{t: t, ctx: ctx, url: url}
		p.submit("RARE")
		id := p.submit("RESIZE")
		a := p.claim()
		if a.JobID != id || a.Callback == nil {
			t.Errorf("got %+v", a)
		}
		p.settle(a, map[string]any{"status": "SNOOZED", "delayMs": 1})
		a = p.claim()
		if a.JobID != id || a.Attempt != 2 {
			t.Errorf("after a snooze came %+v", a)
		}
		p.settle(a, map[string]any{"status": "WAITING", "callbackTimeoutMs": 60_000})
		p.post(a.Callback.URL, map[string]any{"jobId": id, "attempt": 2, "status": "COMPLETED", "output": 7}, nil,
			"X-Callback-Secret", a.Callback.Secret)
		p.wantEnd(id, "COMPLETED")

		id = p.submit("RESIZE")
		a = p.claim()
		p.post(url+"/api/jobs/"+id+"/cancel", map[string]any{}, nil)
		every := time.NewTicker(50 * time.Millisecond)
		defer every.Stop()
		for answer := (pullwire.HeartbeatAnswer{}); len(answer.Cancelled) == 0; {
			<-every.C
			p.post(url+"/api/workers/heartbeat", map[string]any{"worker": "w", "attempts": []any{map[string]any{"token": a.Token}}}, &answer)
		}
		p.settle(a, map[string]any{"status": "FAILED"})
		p.wantEnd(id, "CANCELLED")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

type pulls struct {
	t   *testing.T
	ctx context.Context
	url string
}

func (p *pulls) post(url string, in, out any, headers ...string) {
	p.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		p.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(p.ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode/100 != 2 {
		p.t.Fatalf("%s is answered %s", url, res.Status)
	}
	if out != nil && res.StatusCode != http.StatusNoContent {
		if err := json.NewDecoder(res.Body).Decode(out); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *pulls) submit(jobType string) string {
	p.t.Helper()
	var job struct{ JobID string }
	p.post(p.url+"/api/jobs", map[string]any{"jobType": jobType, "queue": "pull", "payload": map[string]any{}}, &job)
	return job.JobID
}

// claim claims until there is an attempt of type RESIZE.
func (p *pulls) claim() pullwire.Attempt {
	p.t.Helper()
	for range 10 {
		var got pullwire.Attempts
		p.post(p.url+"/api/workers/claim", map[string]any{"worker": "w", "types": []string{"RESIZE"}, "wait": "10s"}, &got)
		if len(got.Attempts) > 0 {
			return got.Attempts[0]
		}
	}
	p.t.Fatal("no attempt came")
	return pullwire.Attempt{}
}

func (p *pulls) settle(a pullwire.Attempt, result map[string]any) {
	p.t.Helper()
	result["token"] = a.Token
	var settled pullwire.Settled
	p.post(p.url+"/api/workers/settle", map[string]any{"worker": "w", "results": []any{result}}, &settled)
	if settled.Results[0].Status != http.StatusOK {
		p.t.Errorf("%v is answered %+v", result, settled.Results[0].Error)
	}
}

func (p *pulls) wantEnd(id, status string) {
	p.t.Helper()
	res, err := http.Get(p.url + "/api/jobs/" + id + "?wait=30s")
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var job struct{ Status string }
	if err := json.NewDecoder(res.Body).Decode(&job); err != nil || job.Status != status {
		p.t.Errorf("it is %s, %v, not %s", job.Status, err, status)
	}
}
