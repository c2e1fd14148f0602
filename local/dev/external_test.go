package dev_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
)

// outside is an outside system that handles each order as its data asks.
type outside struct {
	visit
	server *httptest.Server

	mu     sync.Mutex
	orders map[string][]orderBody // by job
	came   sync.Cond
}

type orderBody struct {
	JobID    string `json:"jobId"`
	Attempt  int    `json:"attempt"`
	Data     plan   `json:"data"`
	Callback struct {
		URL        string    `json:"url"`
		Secret     string    `json:"secret"`
		DeadlineAt time.Time `json:"deadlineAt"`
	} `json:"callback"`
}

// plan lists what happens to each attempt in turn; the last entry repeats.
type plan []struct {
	Answer     int    `json:"answer"`     // its status; 0: 202
	RetryAfter string `json:"retryAfter"` // with it
	Break      string `json:"break"`      // reset, hang or half, instead of an answer
	Callback   string `json:"callback"`   // the rest of its body; empty: no callback
	Early      bool   `json:"early"`      // it comes before the answer
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{visit: visit{t: t, starts: map[string][]time.Time{}}, orders: map[string][]orderBody{}}
	o.came.L = &o.mu
	o.server = httptest.NewServer(http.HandlerFunc(o.take))
	t.Cleanup(o.server.Close)
	return o
}

func (o *outside) take(w http.ResponseWriter, r *http.Request) {
	var order orderBody
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
		o.t.Errorf("read order: %v", err)
		return
	}
	o.mu.Lock()
	o.orders[order.JobID] = append(o.orders[order.JobID], order)
	o.came.Broadcast()
	o.mu.Unlock()
	step := order.Data[min(order.Attempt, len(order.Data))-1]
	if step.Early {
		o.wantCallback(order, step.Callback, http.StatusOK)
	}
	switch step.Break {
	case "reset":
		panic(http.ErrAbortHandler)
	case "hang":
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	case "half":
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("half"))
		return
	}
	if step.RetryAfter != "" {
		w.Header().Set("Retry-After", step.RetryAfter)
	}
	w.WriteHeader(max(step.Answer, http.StatusAccepted))
	if step.Callback != "" && !step.Early {
		_ = http.NewResponseController(w).Flush() // answers the caller before the callback
		o.wantCallback(order, step.Callback, http.StatusOK)
	}
}

// callBack returns the status and error code that answer a callback.
func (o *outside) callBack(order orderBody, rest string) (status int, code string) {
	body := fmt.Sprintf(`{"jobId": %q, "attempt": %d, %s}`, order.JobID, order.Attempt, rest)
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, order.Callback.URL, bytes.NewBufferString(body))
	if err != nil {
		o.t.Error(err)
		return 0, ""
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Callback-Secret", order.Callback.Secret)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		o.t.Errorf("call back: %v", err)
		return 0, ""
	}
	defer func() { _ = answer.Body.Close() }()
	var failure struct{ ErrorCode string }
	if err := json.NewDecoder(answer.Body).Decode(&failure); err != nil {
		o.t.Errorf("read answer to callback: %v", err)
	}
	return answer.StatusCode, failure.ErrorCode
}

func (o *outside) wantCallback(order orderBody, rest string, want int) {
	o.t.Helper()
	if got, code := o.callBack(order, rest); got != want {
		o.t.Errorf("callback of attempt %d (%s) is answered %d %s, not %d", order.Attempt, rest, got, code, want)
	}
}

func (o *outside) external(ctx context.Context, steps, payload, job string) string {
	o.t.Helper()
	return o.submit(ctx, "EXTERNAL", fmt.Sprintf(`{"url": %q, "data": %s%s}`, o.server.URL, steps, payload), job)
}

// order waits until the outside system has received the order of an attempt.
func (o *outside) order(id string, attempt int) orderBody {
	o.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !comes(&o.came, func() bool { return len(o.orders[id]) >= attempt }) {
		o.t.Fatalf("the order of attempt %d of %s does not come", attempt, id)
	}
	return o.orders[id][attempt-1]
}

const (
	done       = `"status": "COMPLETED", "output": {"ok": true}`
	failsAgain = `"status": "FAILED", "errorCode": "SHOP.BUSY", "message": "come again", "retryable": true`
	failsHard  = `"status": "FAILED", "errorCode": "SHOP.GONE", "message": "never", "retryable": false`
)

// soonAgain is the part of a job that permits some retries with a short delay.
func soonAgain(retries int) string {
	return fmt.Sprintf(`, "maxRetryCount": %d, "retryPolicy": {"type": "fixed", "delayMs": 10}`, retries)
}

func TestExternalJobsAndFunctions(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	err := dev.Run(t.Context(), options(t, newFolder(t)), func(ctx context.Context, url string) error {
		o.api = client.New(url, "")
		late := o.external(ctx, `[{}, {"callback": "`+quoted(done)+`"}]`, `, "callbackTimeoutMs": 1`, soonAgain(1))
		o.thatEnd(ctx)
		o.thatWait(ctx)
		o.functions(ctx)
		o.thatAreMany(ctx)
		o.thatCameTooLate(ctx, late)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b[1 : len(b)-1])
}

// thatEnd: whatever the outside system does, the job ends as it should.
func (o *outside) thatEnd(ctx context.Context) {
	for what, c := range map[string]struct {
		steps    string
		job      string
		status   string
		attempts int    // 0: one or more, depending on which message arrives first
		code     string // of the last error
	}{
		"completed":         {`[{"callback": "` + quoted(done) + `"}]`, "", "COMPLETED", 1, ""},
		"completed early":   {`[{"early": true, "callback": "` + quoted(done) + `"}]`, "", "COMPLETED", 1, ""},
		"fails, then done":  {`[{"callback": "` + quoted(failsAgain) + `"}, {"callback": "` + quoted(done) + `"}]`, "", "COMPLETED", 2, ""},
		"fails early":       {`[{"early": true, "callback": "` + quoted(failsAgain) + `"}, {"callback": "` + quoted(done) + `"}]`, "", "COMPLETED", 2, ""},
		"fails too often":   {`[{"callback": "` + quoted(failsAgain) + `"}]`, "", "FAILED", 2, "SHOP.BUSY"},
		"fails for good":    {`[{"callback": "` + quoted(failsHard) + `"}]`, "", "FAILED", 1, "SHOP.GONE"},
		"done, then broken": {`[{"early": true, "callback": "` + quoted(done) + `", "answer": 500}]`, "", "COMPLETED", 0, ""},
		"done, then reset":  {`[{"early": true, "callback": "` + quoted(done) + `", "break": "reset"}]`, "", "COMPLETED", 0, ""},
		"500, then done":    {`[{"answer": 500}, {"callback": "` + quoted(done) + `"}]`, "", "COMPLETED", 2, ""},
		"429, then done":    {`[{"answer": 429, "retryAfter": "1"}, {"callback": "` + quoted(done) + `"}]`, "", "COMPLETED", 2, ""},
		"500 for ever":      {`[{"answer": 500}]`, "", "FAILED", 2, "WORKER.CALL_FAILED"},
		"302":               {`[{"answer": 302}]`, "", "FAILED", 1, "WORKER.CALL_FAILED"},
		"404":               {`[{"answer": 404}]`, "", "FAILED", 1, "WORKER.CALL_FAILED"},
		"resets":            {`[{"break": "reset"}, {"callback": "` + quoted(done) + `"}]`, "", "COMPLETED", 2, ""},
		"closes half way":   {`[{"break": "half"}, {"callback": "` + quoted(done) + `"}]`, "", "COMPLETED", 2, ""},
		"hangs":             {`[{"break": "hang"}]`, `, "timeoutMs": 2000`, "FAILED", 2, "WORKER.TIMEOUT"},
	} {
		retries := 1
		if c.attempts == 0 {
			retries = 8 // the callback of each attempt may arrive too late
		}
		id := o.external(ctx, c.steps, "", soonAgain(retries)+c.job)
		job := o.end(ctx, id)
		if c.attempts == 0 {
			c.attempts = job.Attempt
		}
		if job.Status != c.status || job.Attempt != c.attempts || c.code != "" && job.LastError.ErrorCode != c.code ||
			c.status == "COMPLETED" && string(job.Output) != `{"ok":true}` && string(job.Output) != `{"ok": true}` {
			o.t.Errorf("%s: %s", what, job.Raw)
		}
		o.mu.Lock()
		if n := len(o.orders[id]); n != c.attempts {
			o.t.Errorf("%s: called %d times", what, n)
		}
		o.mu.Unlock()
		for attempt := range c.attempts {
			status, code := o.callBack(o.order(id, attempt+1), `"status": "FAILED"`)
			if status != http.StatusConflict {
				o.t.Errorf("%s: another word of attempt %d is answered %d %s", what, attempt+1, status, code)
			}
		}
	}
}

// thatWait: a WAITING job shows its deadline, and accepts some commands.
func (o *outside) thatWait(ctx context.Context) {
	waiting := func(j *client.Job) bool { return j.Status == "WAITING" }
	id := o.external(ctx, `[{}]`, `, "callbackTimeoutMs": 600000`, "")
	job := o.until(ctx, id, "it waits", waiting)
	order := o.order(id, 1)
	var shown struct{ CallbackDeadlineAt time.Time }
	if err := json.Unmarshal(job.Raw, &shown); err != nil {
		o.t.Error(err)
	}
	if later := shown.CallbackDeadlineAt.Sub(order.Callback.DeadlineAt); later < -time.Second || later > 10*time.Second {
		o.t.Errorf("the order has deadline %s, the API shows %s", order.Callback.DeadlineAt, shown.CallbackDeadlineAt)
	}
	o.wantCallback(order, `"status": "PROGRESS", "progress": {"percent": 30, "message": "packing"}`, http.StatusOK)
	job = o.until(ctx, id, "its progress is shown", func(j *client.Job) bool { return j.Progress != nil })
	if job.Progress.Percent != 30 || job.Status != "WAITING" {
		o.t.Errorf("shows %s", job.Raw)
	}
	o.wantCallback(order, done, http.StatusOK)
	o.wantCallback(order, done, http.StatusOK)
	if job := o.end(ctx, id); job.Status != "COMPLETED" || job.Attempt != 1 {
		o.t.Errorf("ended %s", job.Raw)
	}
	o.wantCallback(order, done, http.StatusOK)

	id = o.external(ctx, `[{}]`, "", "")
	o.until(ctx, id, "it waits", waiting)
	if _, err := o.api.Command(ctx, id, "cancel"); err != nil {
		o.t.Error(err)
	}
	o.wantCallback(o.order(id, 1), done, http.StatusConflict)
	if job := o.end(ctx, id); job.Status != "CANCELLED" {
		o.t.Errorf("ended %s", job.Raw)
	}
	o.wantCallback(o.order(id, 1), done, http.StatusConflict)
}

// thatCameTooLate: without a callback the attempt fails soon after its deadline; a callback after the deadline is
// refused with a code of its own, before and after that.
func (o *outside) thatCameTooLate(ctx context.Context, id string) {
	order := o.order(id, 1)
	if status, code := o.callBack(order, done); status != http.StatusConflict || code != "API.CALLBACK_EXPIRED" {
		o.t.Errorf("a late callback is answered %d %s", status, code)
	}
	job := o.end(ctx, id)
	gaveUp := slices.IndexFunc(job.History, func(m client.Move) bool { return m.From == "WAITING" && m.Attempt == 1 })
	if job.Status != "COMPLETED" || job.Attempt != 2 || job.RetryCount != 1 || gaveUp < 0 || job.History[gaveUp].To != "RETRYING" ||
		!bytes.Contains(job.Raw, []byte("WORKER.CALLBACK_TIMEOUT")) {
		o.t.Errorf("ended %s", job.Raw)
	}
	if status, code := o.callBack(order, done); status != http.StatusConflict || code != "API.CALLBACK_EXPIRED" {
		o.t.Errorf("a callback that came far too late is answered %d %s", status, code)
	}
}

// thatAreMany: a thousand jobs at the same time for one outside system.
func (o *outside) thatAreMany(ctx context.Context) {
	const many = 1000
	request := fmt.Sprintf(`{"jobType": "EXTERNAL", "payload": {"url": %q, "data": [{"callback": %q}]}}`, o.server.URL, done)
	batch := `{"jobs": [` + request
	for range many - 1 {
		batch += "," + request
	}
	var accepted struct{ Results []struct{ JobID string } }
	began := time.Now()
	if _, err := o.api.Do(ctx, http.MethodPost, "/api/jobs/batch", "application/json", []byte(batch+"]}"), &accepted); err != nil {
		o.t.Fatal(err)
	}
	for _, r := range accepted.Results {
		if job := o.end(ctx, r.JobID); job.Status != "COMPLETED" || job.Attempt != 1 {
			o.t.Errorf("ended %s", job.Raw)
		}
	}
	o.t.Logf("%d external jobs and their callbacks took %s", len(accepted.Results), time.Since(began))
}

// functions: an HTTP service does the work of a FUNCTION job, and answers at once or calls back.
func (o *outside) functions(ctx context.Context) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n struct{ Double, Later int }
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			http.Error(w, `{"errorCode": "DOUBLE.WHAT", "message": "no number"}`, http.StatusBadRequest)
			return
		}
		if n.Later > 0 {
			w.WriteHeader(http.StatusAccepted)
			_ = http.NewResponseController(w).Flush()
			order := orderBody{JobID: r.Header.Get("Ce-Jobid"), Attempt: 1}
			order.Callback.URL, order.Callback.Secret = r.Header.Get("X-Callback-Url"), r.Header.Get("X-Callback-Secret")
			o.wantCallback(order, fmt.Sprintf(`"status": "COMPLETED", "output": %d`, 2*n.Later), http.StatusOK)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"is":%d,"id":%q}`, 2*n.Double, r.Header.Get("Ce-Id"))
	}))
	defer server.Close()
	id := o.submit(ctx, "FUNCTION", fmt.Sprintf(`{"url": %q, "data": {"Double": 21}}`, server.URL), "")
	if job := o.end(ctx, id); job.Status != "COMPLETED" || string(job.Output) != `{"is":42,"id":"`+id+`.1"}` {
		o.t.Errorf("ended %s", job.Raw)
	}
	job := o.end(ctx, o.submit(ctx, "FUNCTION", fmt.Sprintf(`{"url": %q, "data": {"Later": 21}}`, server.URL), ""))
	if job.Status != "COMPLETED" || job.Attempt != 1 || string(job.Output) != "42" {
		o.t.Errorf("ended %s", job.Raw)
	}
	job = o.end(ctx, o.submit(ctx, "FUNCTION", fmt.Sprintf(`{"url": %q, "data": "x"}`, server.URL), ""))
	if job.Status != "FAILED" || job.Attempt != 1 || job.LastError.ErrorCode != "DOUBLE.WHAT" || job.LastError.Message != "no number" {
		o.t.Errorf("ended %s", job.Raw)
	}
}
