package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	jsonv2 "github.com/go-json-experiment/json"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/outbound"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Alert runs jobs of type ALERT: it sends a notice of an alert to a webhook, to Slack or as mail.
type Alert struct {
	caller *Caller
	email  *Email
	pages  string // the URL of the dashboard; empty: not known
}

// NewAlert returns the handler. public is where people reach the dashboard; empty: notices have no link.
func NewAlert(caller *Caller, email *Email, public string) *Alert {
	return &Alert{caller, email, strings.TrimRight(public, "/")}
}

// typeAlert is the type of the CloudEvent that a webhook gets.
const typeAlert = "io.jobweaver.alert.v1"

var errDestination = errors.New("payload.to: must have one of webhook, slack and email")

// Run implements Handler.
func (h *Alert) Run(ctx context.Context, a *Attempt) (Result, error) {
	var p jobspec.AlertPayload
	if err := jsonv2.Unmarshal(a.Payload, &p, jsonv2.RejectUnknownMembers(true)); err != nil {
		return Result{}, invalidPayload(fmt.Errorf("payload: %w", err))
	}
	switch {
	case p.To.Slack != "":
		return Result{}, h.post(ctx, a, p, h.slack)
	case p.To.Webhook != "":
		return Result{}, h.post(ctx, a, p, h.event)
	case len(p.To.Email) > 0:
		return h.mail(ctx, a, p)
	}
	return Result{}, invalidPayload(errDestination)
}

// post sends a notice to a URL. Its failure has none of the URL's path, which may be a secret.
func (h *Alert) post(
	ctx context.Context, a *Attempt, p jobspec.AlertPayload,
	write func(context.Context, *Attempt, jobspec.Notice, *http.Request) ([]byte, error),
) error {
	if err := outbound.CheckURL(p.To.URL()); err != nil {
		return invalidPayload(fmt.Errorf("payload.to: %w", err))
	}
	request, wrong := h.caller.request(ctx, a, callPayload{URL: p.To.URL()}, nil)
	if wrong != nil {
		return wrong
	}
	body, err := write(ctx, a, p.Notice, request)
	if err != nil {
		return invalidPayload(err)
	}
	answer, err := h.caller.call(request, a, body, maxAnswer)
	var failed *Failure
	switch {
	case !errors.As(err, &failed):
	case answer == nil:
		failed.Message = hidePath(failed.Message, request.URL)
	default: // without the text of the answer, which may repeat a part of the URL
		failed.Message = fmt.Sprintf("%s %s://%s/…: answered %d %s", request.Method, request.URL.Scheme, request.URL.Host,
			answer.Status, http.StatusText(answer.Status))
	}
	return err
}

// hidePath returns a text without the path and the query of a URL.
func hidePath(text string, of *url.URL) string {
	for _, part := range []string{of.RequestURI(), of.EscapedPath(), of.Path, of.RawQuery} {
		if strings.Trim(part, "/?") != "" {
			text = strings.ReplaceAll(text, part, "/…")
		}
	}
	return text
}

func (h *Alert) slack(_ context.Context, _ *Attempt, n jobspec.Notice, r *http.Request) ([]byte, error) {
	r.Header.Set("Content-Type", "application/json")
	title, text := h.texts(n)
	return jobevent.Encode(map[string]string{"text": "*" + forSlack(title) + "*\n" + forSlack(text)})
}

// forSlack escapes the characters that Slack's text treats as markup.
func forSlack(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// event writes a CloudEvent whose id is that of the notice, in each attempt.
func (h *Alert) event(ctx context.Context, a *Attempt, n jobspec.Notice, r *http.Request) ([]byte, error) {
	meta := jobevent.Meta{Function: "runjob", ID: n.NoticeID.String(), JobID: a.JobID, TraceID: a.TraceID}
	item, err := jobevent.New(typeAlert, meta, struct {
		Type string `json:"type"` // in the body, because headers are not signed
		jobspec.Notice
	}{typeAlert, n})
	if err != nil {
		return nil, err
	}
	item.SetTime(n.At)
	telemetry.SetHere(ctx, &item, jobevent.SpanID(a.Token))
	e := item.Event()
	if err := cehttp.WriteRequest(binding.WithForceBinary(ctx), binding.ToMessage(&e), r); err != nil {
		return nil, fmt.Errorf("write event: %w", err)
	}
	return e.DataEncoded, nil
}

func (h *Alert) mail(ctx context.Context, a *Attempt, p jobspec.AlertPayload) (Result, error) {
	title, text := h.texts(p.Notice)
	payload, err := json.Marshal(map[string]any{"to": p.To.Email, "subject": title, "text": text})
	if err != nil {
		return Result{}, invalidPayload(err)
	}
	message := *a
	message.Payload = payload
	return h.email.Run(ctx, &message)
}

// texts returns a notice for people: one line, and the details.
func (h *Alert) texts(n jobspec.Notice) (title, text string) {
	within := " within " + counted(int64(n.WindowMinutes), "minute")
	title = fmt.Sprintf("[%s] %s: %s failed%s", n.State, n.Alert, counted(n.Failed, "job"), within)
	if n.State == jobspec.NoticeTest {
		title = fmt.Sprintf("[%s] %s: this is a test of the alert", n.State, n.Alert)
	}
	lines := []string{fmt.Sprintf("%d of %s that ended failed.", n.Failed, counted(n.Ended, "job"))}
	threshold := "Threshold: " + counted(int64(n.Failures), "failure") + within
	if n.Percent != nil {
		threshold += fmt.Sprintf(", and %d %% of the jobs that ended", *n.Percent)
	}
	lines = append(lines, threshold+".")
	for _, of := range []struct {
		name  string
		value *string
	}{{"Job type", n.JobType}, {"Queue", n.Queue}, {"Error code", n.ErrorCode}, {"Owner", n.OwnerID}} {
		if of.value != nil {
			lines = append(lines, of.name+": "+*of.value)
		}
	}
	if n.Since != nil {
		lines = append(lines, "Since: "+n.Since.UTC().Format(time.RFC3339))
	}
	if h.pages != "" {
		page := h.pages + "/alerts/" + url.PathEscape(n.Alert)
		if n.OwnerID != nil {
			page += "?ownerId=" + url.QueryEscape(*n.OwnerID)
		}
		lines = append(lines, page)
	}
	return title, strings.Join(lines, "\n")
}

func counted(n int64, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}
