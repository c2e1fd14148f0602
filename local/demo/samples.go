package demo

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

var simulations = []sample{
	{
		name: "plain", about: "one LOG step by POST /api/jobs", status: "COMPLETED", attempts: 1,
		submit: byREST(steps(nil, step("LOG", "message", "hello"))),
	},
	{
		name: "fails-twice", about: "succeeds at its third attempt, after 300 and 600 ms", status: "COMPLETED", attempts: 3,
		submit: byREST(steps(map[string]any{"retryPolicy": map[string]any{"type": "list", "delaysMs": []int{300, 600}}},
			step("FAIL", "message", "not yet", "failAttempts", 2), step("LOG", "message", "now"))),
	},
	{
		name: "dies", about: "fails for good and leaves a dead letter", status: "FAILED", attempts: 2,
		submit: byREST(steps(map[string]any{
			"maxRetryCount": 1, "retryPolicy": map[string]any{"type": "fixed", "delayMs": 200},
		},
			step("FAIL", "message", "never", "errorCode", "DEMO"))),
	},
	{
		name: "slow", about: "sleeps for three seconds", status: "COMPLETED", attempts: 1,
		submit: byREST(steps(nil, step("SLEEP", "durationMs", 1500), step("COMPUTE", "iterations", 100_000),
			step("SLEEP", "durationMs", 1500))),
	},
	{
		name: "event-binary", about: "a CloudEvent in binary mode", status: "COMPLETED", attempts: 1,
		submit: func(ctx context.Context, c *client.Client) (string, error) {
			return byEvent(ctx, c, "application/json", logJob, "ce-specversion", "1.0", "ce-id", uuid.NewString(),
				"ce-source", "/demo", "ce-type", jobevent.TypeSubmit)
		},
	},
	{
		name: "event-structured", about: "a CloudEvent in structured mode", status: "COMPLETED", attempts: 1,
		submit: func(ctx context.Context, c *client.Client) (string, error) {
			return byEvent(ctx, c, "application/cloudevents+json", structured())
		},
	},
	{
		name: "event-batch", about: "a batch of one CloudEvent", status: "COMPLETED", attempts: 1,
		submit: func(ctx context.Context, c *client.Client) (string, error) {
			return byEvent(ctx, c, "application/cloudevents-batch+json", []byte("["+string(structured())+"]"))
		},
	},
}

var logJob = steps(nil, step("LOG", "message", "an event brought me"))

// step makes one step of a simulation; fields are pairs of names and values.
func step(typ string, fields ...any) map[string]any {
	s := map[string]any{"type": typ}
	for i := 0; i+1 < len(fields); i += 2 {
		s[fields[i].(string)] = fields[i+1]
	}
	return s
}

func byREST(request []byte) func(context.Context, *client.Client) (string, error) {
	return func(ctx context.Context, c *client.Client) (string, error) {
		accepted, err := c.SubmitJSON(ctx, request)
		return accepted.JobID, err
	}
}

func structured() []byte {
	const event = `{"specversion":"1.0","id":%q,"source":"/demo","type":%q,"datacontenttype":"application/json","data":%s}`
	return fmt.Appendf(nil, event, uuid.NewString(), jobevent.TypeSubmit, logJob)
}

func byEvent(
	ctx context.Context, c *client.Client, contentType string, body []byte, headers ...string,
) (string, error) {
	var answer struct {
		JobID string `json:"jobId"`
		Jobs  []struct {
			JobID string `json:"jobId"`
		} `json:"jobs"`
	}
	raw, err := c.Do(ctx, http.MethodPost, "/events", contentType, body, &answer, headers...)
	if err != nil {
		return "", err
	}
	if len(answer.Jobs) == 1 {
		answer.JobID = answer.Jobs[0].JobID
	}
	if answer.JobID == "" {
		return "", fmt.Errorf("no job id in the answer %s", raw)
	}
	return answer.JobID, nil
}
