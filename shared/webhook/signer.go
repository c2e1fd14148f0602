// Package webhook signs outgoing requests and verifies callbacks by Standard Webhooks
// (https://www.standardwebhooks.com), and derives the secret with which an outside system calls back for one attempt.
//
// Why verification is our own: docs/decisions/security.md#the-standard-webhooks-library-signs-verification-is-ours
package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Signer signs messages with each of its secrets.
type Signer struct{ keys []key }

// NewSigner reads the secrets of WEBHOOK_SECRETS. Without any, nothing is signed.
func NewSigner(secrets []string) (*Signer, error) {
	keys, err := parse(nameSigning, secrets)
	return &Signer{keys}, err
}

// Sign adds webhook-id, webhook-timestamp and, with a signature for each secret, webhook-signature.
func (s *Signer) Sign(h http.Header, id string, at time.Time, body []byte) {
	h.Set(standardwebhooks.HeaderWebhookID, id)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	h.Del(standardwebhooks.HeaderWebhookSignature)
	if s == nil || len(s.keys) == 0 {
		return
	}
	signatures := make([]string, len(s.keys))
	for i, k := range s.keys {
		signatures[i], _ = k.signer().Sign(id, at, body) // has no error to return
	}
	h.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
}
