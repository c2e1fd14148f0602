package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/jobweaver/jobweaver/shared/client/jobrun"
)

// These are the requests of a pull worker (docs/pull-workers.md). The package worker makes them for its
// handlers.

// WorkClaim is a request for attempts to run.
type WorkClaim struct {
	Worker string        `json:"worker"` // names the pull worker
	Types  []string      `json:"types"`
	Queues []string      `json:"queues,omitempty"` // empty: any
	Slots  int           `json:"slots,omitempty"`  // the most attempts in the answer; 0: 1
	Wait   time.Duration `json:"-"`                // how long the answer is held while there are no attempts; 0: 30 s
}

// MarshalJSON writes the wait in Go's format, such as 30s.
func (c WorkClaim) MarshalJSON() ([]byte, error) {
	type plain WorkClaim
	wait := ""
	if c.Wait > 0 {
		wait = c.Wait.String()
	}
	return json.Marshal(struct {
		plain
		Wait string `json:"wait,omitempty"`
	}{plain(c), wait})
}

// WorkAttempt is a claimed attempt. A null in the answer is the zero value here.
type WorkAttempt struct {
	jobrun.Info

	Token    string          `json:"token"` // names the attempt in heartbeats and results
	Tags     []string        `json:"tags"`
	Payload  json.RawMessage `json:"payload"`
	Deadline time.Time       `json:"deadline"` // the end of the attempt's timeout, by this machine's clock

	Checkpoint json.RawMessage `json:"checkpoint"` // what earlier attempts have saved; null: nothing
	// Parents are the jobs of the flow to whose outputs the payload refers.
	Parents []WorkParent `json:"parents,omitempty"`
	Event   SubmitEvent  `json:"event,omitempty"` // nil: no CloudEvent has submitted the job

	Callback *WorkCallback `json:"callback"` // nil: it cannot wait for an outside system
}

// WorkCallback is what an outside system needs to end an attempt that was settled as WAITING.
type WorkCallback struct {
	URL    string `json:"url"`
	Secret string `json:"secret"` // the header X-Callback-Secret
}

// WorkHeartbeat keeps the worker's attempts for another 15 s.
type WorkHeartbeat struct {
	Worker   string     `json:"worker"`
	Attempts []WorkSign `json:"attempts"`
}

// WorkSign is the part of a heartbeat about one attempt.
type WorkSign struct {
	Token    string     `json:"token"`
	Progress *Progress  `json:"progress,omitempty"` // nil: as before
	Log      []WorkLine `json:"log,omitempty"`      // new lines, at most 200
}

// WorkLine is a line for an attempt's log.
type WorkLine struct {
	Level string `json:"level"` // debug, info, warn or error
	Text  string `json:"text"`
}

// WorkHeartbeatAnswer names the attempts of a heartbeat that must end. Cancelled ones may still be settled for 5 s,
// lost ones may not.
type WorkHeartbeatAnswer struct {
	Cancelled []string `json:"cancelled"`
	Lost      []string `json:"lost"`
}

// WorkParent is a job of the flow with its output, which the payload already contains.
type WorkParent struct {
	Name   string          `json:"name"`
	JobID  string          `json:"jobId"`
	Output json.RawMessage `json:"output"`
}

// WorkCheckpoint is the checkpoint for the next attempt of a job.
type WorkCheckpoint struct {
	Token      string          `json:"token"`
	Number     int64           `json:"number"`     // from 1; the highest number of an attempt counts
	Checkpoint json.RawMessage `json:"checkpoint"` // at most 64 KiB
}

// WorkResult is the result of an attempt: Status is Completed, Failed, Waiting or WorkSnoozed.
type WorkResult struct {
	Token  string `json:"token"`
	Status string `json:"status"`

	Output          json.RawMessage `json:"output,omitempty"` // of Completed, at most 256 KiB
	ErrorCode       string          `json:"errorCode,omitempty"`
	Message         string          `json:"message,omitempty"`
	Retryable       *bool           `json:"retryable,omitempty"` // of Failed; nil: true
	RetryAfter      time.Duration   `json:"-"`                   // of Failed; 0: the job's retryPolicy decides
	Delay           time.Duration   `json:"-"`                   // of WorkSnoozed
	CallbackTimeout time.Duration   `json:"-"`                   // of Waiting
}

// WorkSnoozed is the status of an attempt that runs again after a delay. No retry is counted.
const WorkSnoozed = "SNOOZED"

// MarshalJSON writes durations as milliseconds, and a shorter duration as 1.
func (r WorkResult) MarshalJSON() ([]byte, error) {
	type plain WorkResult
	ms := func(d time.Duration) int64 {
		if d > 0 {
			return max(d.Milliseconds(), 1)
		}
		return 0
	}
	return markup(struct {
		plain
		RetryAfterMs      int64 `json:"retryAfterMs,omitempty"`
		DelayMs           int64 `json:"delayMs,omitempty"`
		CallbackTimeoutMs int64 `json:"callbackTimeoutMs,omitempty"`
	}{plain(r), ms(r.RetryAfter), ms(r.Delay), ms(r.CallbackTimeout)})
}

// markup writes JSON with < unescaped: with \u003c an HTML page would have twice the bytes, and the size of outputs is
// limited.
func markup(value any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// WorkAnswer is the answer to one result or one checkpoint. Status 200: it is stored. 409: the attempt is over, so it
// changes nothing. 503: it is not known whether it is stored; send it again. 400: it is invalid, and the attempt
// continues. 413: the checkpoint is too large.
type WorkAnswer struct {
	Token  string `json:"token"`
	Status int    `json:"status"`
	Error  *Error `json:"error"` // nil with 200
}

// Claim claims attempts, and returns none if there were none in time. An attempt is handed out once: if the answer is
// lost, its job runs again after 15 s.
func (c *Client) Claim(ctx context.Context, claim WorkClaim) ([]WorkAttempt, error) {
	var answer struct{ Attempts []WorkAttempt }
	var header http.Header
	if err := c.work(ctx, request{path: "/api/workers/claim", header: &header}, claim, &answer); err != nil {
		return nil, err
	}
	// The gateway sends deadlines by its own clock. If this machine's clock is wrong, each attempt would time out at
	// once, or never.
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		if wrong := time.Since(date); wrong.Abs() > dateIsRight {
			for i := range answer.Attempts {
				answer.Attempts[i].Deadline = answer.Attempts[i].Deadline.Add(wrong)
			}
		}
	}
	return answer.Attempts, nil
}

// dateIsRight is how far a Date, which has whole seconds, may be from a clock that is right.
const dateIsRight = 2 * time.Second

// Heartbeat keeps attempts. It may be repeated, but then its log lines are stored twice.
func (c *Client) Heartbeat(ctx context.Context, heartbeat WorkHeartbeat) (answer WorkHeartbeatAnswer, err error) {
	err = c.work(ctx, request{path: "/api/workers/heartbeat", repeatable: true}, heartbeat, &answer)
	return answer, err
}

// SaveCheckpoints saves checkpoints of attempts, and returns an answer for each. It may be repeated.
func (c *Client) SaveCheckpoints(ctx context.Context, worker string, all ...WorkCheckpoint) ([]WorkAnswer, error) {
	return c.eachAnswered(ctx, "/api/workers/checkpoint", len(all), struct {
		Worker      string           `json:"worker"`
		Checkpoints []WorkCheckpoint `json:"checkpoints"`
	}{worker, all})
}

// Settle reports the results of attempts, and returns an answer for each. It may be repeated: for two minutes the same
// result gets the same answer.
func (c *Client) Settle(ctx context.Context, worker string, results ...WorkResult) ([]WorkAnswer, error) {
	return c.eachAnswered(ctx, "/api/workers/settle", len(results), struct {
		Worker  string       `json:"worker"`
		Results []WorkResult `json:"results"`
	}{worker, results})
}

// eachAnswered sends a request whose response must have an answer for each of its n entries.
func (c *Client) eachAnswered(ctx context.Context, path string, n int, in any) ([]WorkAnswer, error) {
	var answer struct{ Results []WorkAnswer }
	err := c.work(ctx, request{path: path, repeatable: true}, in, &answer)
	if err == nil && len(answer.Results) != n {
		err = fmt.Errorf("%d entries have %d answers", n, len(answer.Results))
	}
	return answer.Results, err
}

func (c *Client) work(ctx context.Context, r request, in, answer any) (err error) {
	r.method, r.contentType = http.MethodPost, "application/json"
	if r.body, err = markup(in); err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	_, err = c.do(ctx, r, answer)
	return err
}
