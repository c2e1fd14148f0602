package client

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// maxWebhook is more bytes than a message about a job can have: its output alone has up to 256 KiB.
const maxWebhook = 1 << 20

var errNoSecret = errors.New("a webhook secret is whsec_ and base64, as jobweaver webhook-secrets prints it")

// Webhook verifies the messages that report the end of a job to a callbackUrl (docs/callbacks.md).
type Webhook struct{ by []*standardwebhooks.Webhook }

// Ending is a verified message.
type Ending struct {
	// ID is the id of the message. A message arrives at least once: store the ids of the messages that you have
	// handled.
	ID string
	// Job is the job as it was when it ended.
	Job *Job
}

// NewWebhook takes the secrets that `jobweaver webhook-secrets end` prints, each beginning with whsec_. During a change
// of secrets there are two, and a signature by either is enough. Blanks and line ends around a secret are not part of
// it.
func NewWebhook(secrets ...string) (*Webhook, error) {
	if len(secrets) == 0 {
		return nil, fmt.Errorf("a webhook needs a secret")
	}
	w := &Webhook{}
	for _, secret := range secrets {
		key, found := strings.CutPrefix(strings.TrimSpace(secret), "whsec_")
		bytes, err := base64.StdEncoding.Strict().DecodeString(key)
		if !found || err != nil || len(bytes) == 0 {
			return nil, errNoSecret // without the secret
		}
		by, err := standardwebhooks.NewWebhookRaw(bytes)
		if err != nil {
			return nil, fmt.Errorf("read webhook secret: %w", err)
		}
		w.by = append(w.by, by)
	}
	return w, nil
}

// Verify reads a message, given its unchanged body. It returns an error if the message is not signed with one of the
// secrets, was changed on its way, or is over five minutes old: answer 401.
func (w *Webhook) Verify(header http.Header, body []byte) (*Ending, error) {
	var err error
	for _, by := range w.by {
		if err = by.Verify(body, header); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("verify webhook: %w", err)
	}
	job := &Job{Raw: body}
	if err := json.Unmarshal(body, job); err != nil {
		return nil, fmt.Errorf("decode webhook: %w", err)
	}
	return &Ending{ID: header.Get(standardwebhooks.HeaderWebhookID), Job: job}, nil
}

// VerifyRequest reads the body of a request, at most 1 MiB, and verifies it.
func (w *Webhook) VerifyRequest(r *http.Request) (*Ending, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxWebhook))
	if err != nil {
		return nil, fmt.Errorf("read webhook: %w", err)
	}
	return w.Verify(r.Header, body)
}
