package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"

	"github.com/jobweaver/jobweaver/shared/client"
)

// workSamples are jobs of the other job types, and one whose end is delivered.
func workSamples(calls *receiver, installation Installation) []sample {
	samples := []sample{
		{
			name: "external", about: "an outside system has it and calls back", status: "COMPLETED", attempts: 1,
			submit: byREST(job("EXTERNAL", map[string]any{
				"url": calls.url + "/outside", "data": map[string]any{"order": 17},
			}, nil)),
			check: output(`{"order": "shipped"}`),
		},
		{
			name: "function", about: "a function answers its CloudEvent", status: "COMPLETED", attempts: 1,
			submit: byREST(job("FUNCTION", map[string]any{
				"url": calls.url + "/function", "data": map[string]any{"text": "to weave jobs"},
			}, nil)),
			check: output(`{"words": 3}`),
		},
		{
			name: "report", about: "four rows as CSV", status: "COMPLETED", attempts: 1, check: storedReport,
			submit: byREST(job("REPORT", map[string]any{
				"title": "Sales", "format": "csv", "columns": []any{
					map[string]any{"name": "town"}, map[string]any{"name": "sold", "total": "sum"},
				},
				"rows": []any{[]any{"Berlin", 17}, []any{"Paris", 4}, []any{"Rome", 9}, []any{"Oslo", 1}},
			}, nil)),
		},
		{
			name: "alert", about: "a test notice of an alert reaches its webhook", status: "COMPLETED", attempts: 1,
			submit: func(ctx context.Context, c *client.Client) (string, error) {
				const path, any = "/api/alerts/demo", "application/json" // paused: the receiver is gone after the demo
				alert := fmt.Appendf(nil, `{"failures": 5, "paused": true, "to": {"webhook": %q}}`, calls.url+"/alert")
				if _, err := c.Do(ctx, http.MethodPut, path, any, alert, nil); err != nil {
					return "", err
				}
				var made struct{ JobID string }
				_, err := c.Do(ctx, http.MethodPost, path+"/test", any, nil, &made)
				return made.JobID, err
			},
		},
		{
			name: "delivered", about: "its end is delivered to its callbackUrl, signed", status: "COMPLETED", attempts: 1,
			submit: byREST(steps(map[string]any{"callbackUrl": calls.url + "/ended"}, step("LOG", "message", "deliver my end"))),
			check: func(ctx context.Context, job *client.Job) error {
				status, err := calls.endOf(ctx, job.JobID)
				if err == nil && status != job.Status {
					err = fmt.Errorf("the delivery has %s", status)
				}
				return err
			},
		},
	}
	if installation.MailPage == "" {
		return samples
	}
	return append(samples, sample{
		name: "email", about: "a mail, to be seen at the page of mails", status: "COMPLETED", attempts: 1,
		submit: byREST(job("EMAIL", map[string]any{
			"to":      []any{"Ada Lovelace <ada@example.org>"},
			"subject": "Hello from the demo", "text": "Only you receive this.",
		}, nil)),
		check: func(ctx context.Context, _ *client.Job) error {
			return shows(ctx, installation.MailPage, "Hello from the demo")
		},
	})
}

// shows checks that a page contains a text.
func shows(ctx context.Context, page, text string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask for %s: %w", page, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask for %s: %w", page, err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("read %s: %w", page, err)
	}
	if !strings.Contains(string(body), text) {
		return fmt.Errorf("%q is not at %s", text, page)
	}
	return nil
}

func output(want string) func(context.Context, *client.Job) error {
	return func(_ context.Context, job *client.Job) error {
		var got, wanted any
		err := errors.Join(json.Unmarshal(job.Output, &got), json.Unmarshal([]byte(want), &wanted))
		if err != nil || !reflect.DeepEqual(got, wanted) {
			return fmt.Errorf("output is %s, not %s", job.Output, want)
		}
		return nil
	}
}

// storedReport checks the file of a report, if the report was stored as a file.
func storedReport(_ context.Context, job *client.Job) error {
	var report struct {
		Location, SHA256 string
		Rows             int
	}
	if err := json.Unmarshal(job.Output, &report); err != nil || report.Rows != 4 {
		return fmt.Errorf("output is %s", job.Output)
	}
	at, err := url.Parse(report.Location)
	if err != nil || at.Scheme != "file" {
		return err
	}
	file, err := os.ReadFile(at.Path)
	if err != nil {
		return fmt.Errorf("read report: %w", err)
	}
	if sum := sha256.Sum256(file); hex.EncodeToString(sum[:]) != report.SHA256 {
		return fmt.Errorf("%s does not have the SHA-256 of the report", at.Path)
	}
	return nil
}
