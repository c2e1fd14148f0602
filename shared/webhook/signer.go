// Package webhook signs what goes out and knows what comes in, by Standard Webhooks
// (https://www.standardwebhooks.com), and makes the secret by which an outside system speaks for one attempt.
package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Signer signs what goes out, with each of its secrets.
type Signer struct{ keys []key }

// NewSigner takes the secrets of WEBHOOK_SECRETS. Without any, nothing is signed.
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
