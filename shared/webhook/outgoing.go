package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"net/http"
	"time"
)

// Purpose is what a signed message is for. Each purpose has its own keys, so that a receiver of one accepts no message
// of the other.
type Purpose string

// The purposes.
const (
	End  Purpose = "end"  // the end of a job, for its callbackUrl
	Call Purpose = "call" // a request of an EXTERNAL or FUNCTION job, whose body its submitter chooses
)

// Outgoing signs the messages of one purpose, each with a key of its job's owner.
type Outgoing struct {
	keys    []key
	purpose Purpose
}

// NewOutgoing reads the secrets of WEBHOOK_SECRETS. Without any, nothing is signed.
func NewOutgoing(cfg Config, purpose Purpose) (*Outgoing, error) {
	keys, err := parse(nameSigning, cfg.Secrets.Reveal())
	return &Outgoing{keys, purpose}, err
}

// Sign signs as Signer.Sign does, with a key derived from each secret. ownerID is empty for a job without an owner.
func (o *Outgoing) Sign(h http.Header, ownerID, id string, at time.Time, body []byte) {
	(&Signer{o.of(ownerID)}).Sign(h, id, at, body)
}

// Secrets returns the keys with which an owner's receivers verify, one for each secret, the newest first.
func (o *Outgoing) Secrets(ownerID string) []string {
	texts := make([]string, len(o.keys))
	for i, k := range o.of(ownerID) {
		texts[i] = k.text()
	}
	return texts
}

// of derives the keys of an owner. The text that is hashed here begins with the purpose, and a signed message begins
// with a UUID, so no signature with a secret itself is a key.
func (o *Outgoing) of(ownerID string) []key {
	keys := make([]key, len(o.keys))
	for i, k := range o.keys {
		mac := hmac.New(sha256.New, k.bytes())
		mac.Write([]byte(string(o.purpose) + "\x00" + ownerID))
		keys[i] = newKey(mac.Sum(nil))
	}
	return keys
}
