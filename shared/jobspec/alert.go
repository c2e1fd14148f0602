package jobspec

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Limits of an alert.
const (
	MaxAlertAddresses = 20
	MaxAlertWindow    = 60          // minutes: for two hours, tallies are kept by the minute
	MaxAlertQuiet     = 7 * 24 * 60 // minutes
)

// NoticeState is what a notice of an alert is about.
type NoticeState string

// The states.
const (
	NoticeFiring   NoticeState = "FIRING"   // the threshold is reached, or still is
	NoticeResolved NoticeState = "RESOLVED" // it no longer is
	NoticeTest     NoticeState = "TEST"
)

// AlertPayload is the payload of a job of type ALERT: a notice, and where it goes.
type AlertPayload struct {
	To     Destination `json:"to"`
	Notice Notice      `json:"notice"`
}

// Destination is where the notices of an alert go. One of its members is set.
type Destination struct {
	Webhook string   `json:"webhook,omitempty"`
	Slack   string   `json:"slack,omitempty"` // the URL of an incoming webhook, which is a secret
	Email   []string `json:"email,omitempty"`
}

// Notice is one message of an alert, as a receiver gets it.
type Notice struct {
	NoticeID      uuid.UUID   `json:"noticeId"`
	At            time.Time   `json:"at"`
	State         NoticeState `json:"state"`
	Since         *time.Time  `json:"since"` // it fires or fired since then; nil: a test
	Alert         string      `json:"alert"`
	OwnerID       *string     `json:"ownerId"` // nil: the alert is about the jobs of all owners
	JobType       *string     `json:"jobType"` // nil: any
	Queue         *string     `json:"queue"`
	ErrorCode     *string     `json:"errorCode"`
	Failures      int         `json:"failures"` // the threshold
	Percent       *int        `json:"percent"`
	WindowMinutes int         `json:"windowMinutes"`
	Failed        int64       `json:"failed"` // in the window
	Ended         int64       `json:"ended"`
}

// URL returns the URL of the destination; empty: it is no URL.
func (d *Destination) URL() string {
	if d.Slack != "" {
		return d.Slack
	}
	return d.Webhook
}

// Shown returns the destination as it is shown to people: a URL without its path, which may be a secret.
func (d Destination) Shown() Destination {
	d.Webhook, d.Slack = shownURL(d.Webhook), shownURL(d.Slack)
	return d
}

// hiddenPath stands for the path of a URL.
const hiddenPath = "/…"

func shownURL(text string) string {
	u, err := url.Parse(text)
	if text == "" || err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + hiddenPath
}

// ShownPayload returns the payload of a job as it is shown: that of an ALERT without the secret part of its URL.
func ShownPayload(jobType string, payload json.RawMessage) json.RawMessage {
	if jobType != Alert || payload == nil {
		return payload
	}
	var p struct {
		To     Destination     `json:"to"`
		Notice json.RawMessage `json:"notice"`
	}
	err := json.Unmarshal(payload, &p)
	p.To = p.To.Shown()
	shown, wrong := jobevent.Encode(p)
	if err != nil || wrong != nil {
		return json.RawMessage("null") // no alert made it, and the place of its secret is unknown
	}
	return shown
}

// NewAlertJob returns the request of the job that sends a notice. Its owner is that of the alert; its queue is the
// default one, or the first of an installation without that.
func NewAlertJob(ownerID string, queues []string, p AlertPayload) (Request, error) {
	payload, err := jobevent.Encode(p)
	if err != nil {
		return Request{}, fmt.Errorf("write a notice: %w", err)
	}
	body, err := jobevent.Encode(map[string]any{
		"jobType": Alert, "priority": MaxPriority, "maxRetryCount": alertRetries, "payload": json.RawMessage(payload),
		"retryPolicy": map[string]any{"type": "exponential", "baseMs": 5_000, "capMs": 3_600_000, "jitter": 0.2},
		"timeoutMs":   60_000,
	})
	if err != nil {
		return Request{}, fmt.Errorf("write the job of a notice: %w", err)
	}
	req, err := Decode(body)
	req.OwnerID = ownerID
	if len(queues) > 0 && !slices.Contains(queues, DefaultQueue) {
		req.Queue = queues[0]
	}
	return req, err
}

// alertRetries are those of a notice: about half a day.
const alertRetries = 20
