package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	tolerance     = 5 * time.Minute
	maxID         = 255
	maxSignatures = 1 << 10 // bytes
	instantDigits = 10      // of a Unix time in seconds, from 2001 to 2286
)

// Why a signature was refused. No error reveals which part of it would have been right.
var (
	errHeaders   = errors.New("needs one valid webhook-id, webhook-timestamp and webhook-signature each")
	errTime      = errors.New("webhook-timestamp is more than 5 minutes from now")
	errSignature = errors.New("webhook-signature matches no secret")
)

// CallbackKeys authenticate callbacks. A nil one accepts none.
type CallbackKeys struct{ keys []key }

// NewCallbackKeys takes the secrets of CALLBACK_SECRETS.
func NewCallbackKeys(secrets []string) (*CallbackKeys, error) {
	keys, err := parse(nameCallback, secrets)
	return &CallbackKeys{keys}, err
}

// Empty reports whether there is no secret, so that no callback can be accepted.
func (k *CallbackKeys) Empty() bool { return k == nil || len(k.keys) == 0 }

// Secret derives the secret of an attempt from its jobevent.AttemptToken. The secret is valid for this attempt only. It
// is empty if there is nothing to derive it from.
func (k *CallbackKeys) Secret(token string) string {
	if k.Empty() {
		return ""
	}
	return k.keys[0].of(token).text()
}

// of derives the key of an attempt. A text that is signed with a key of the setting itself has at least two dots, and a
// token has one, so no such signature is the key of an attempt.
func (k key) of(token string) key {
	mac := hmac.New(sha256.New, k.bytes())
	mac.Write([]byte(token))
	return newKey(mac.Sum(nil))
}

// CheckSecret reports whether a text is the secret of the attempt, or a secret of the setting, which is valid for all.
func (k *CallbackKeys) CheckSecret(token, given string) bool {
	if k.Empty() {
		return false
	}
	hash, found := sha256.Sum256([]byte(given)), 0
	for _, own := range k.keys {
		for _, right := range []key{own, own.of(token)} {
			want := sha256.Sum256([]byte(right.text()))
			found |= subtle.ConstantTimeCompare(hash[:], want[:])
		}
	}
	return found == 1
}

// Verify looks for a signature with the attempt's secret, or with one that is valid for all, whose timestamp is at most
// 5 minutes from now. It returns the message's id. The caller remembers the id for that long, and accepts it once.
func (k *CallbackKeys) Verify(token string, h http.Header, body []byte, now time.Time) (id string, err error) {
	if k.Empty() {
		return "", errSignature
	}
	var keys []key
	for _, own := range k.keys {
		keys = append(keys, own.of(token), own)
	}
	return verify(keys, h, body, now)
}

// Verify looks for a signature by one of the secrets (whsec_ and base64), not older than 5 minutes and not from later
// than that. It returns the id of the message, which is signed.
func Verify(secrets []string, h http.Header, body []byte, now time.Time) (id string, err error) {
	keys, err := parse("secret", secrets)
	if err != nil {
		return "", err
	}
	return verify(keys, h, body, now)
}

func verify(keys []key, h http.Header, body []byte, now time.Time) (id string, err error) {
	id, at, err := envelope(h)
	if err != nil {
		return "", err
	}
	if d := now.Sub(time.Unix(at, 0)); d > tolerance || d < -tolerance {
		return "", errTime
	}
	for _, k := range keys {
		if k.signer().VerifyIgnoringTimestamp(body, h) == nil { // the time is checked above, by now
			return id, nil
		}
	}
	return "", errSignature
}

// envelope reads the headers. It accepts one form of each.
func envelope(h http.Header) (id string, at int64, err error) {
	names := []string{
		standardwebhooks.HeaderWebhookID, standardwebhooks.HeaderWebhookTimestamp, standardwebhooks.HeaderWebhookSignature,
	}
	for _, name := range names {
		if len(h.Values(name)) != 1 {
			return "", 0, errHeaders
		}
	}
	id = h.Get(names[0])
	stamp := h.Get(names[1])
	at, err = strconv.ParseInt(stamp, 10, 64)
	if err != nil || !isInstant(stamp) || !isID(id) || len(h.Get(names[2])) > maxSignatures {
		return "", 0, errHeaders
	}
	return id, at, nil
}

// isID accepts printable ASCII. The signed text is "id.timestamp.body", so a message whose id has a timestamp after a
// dot could be cut in another place and still be signed.
func isID(id string) bool {
	if id == "" || len(id) > maxID {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	for _, part := range strings.Split(id, ".")[1:] {
		if isInstant(part) {
			return false
		}
	}
	return true
}

func isInstant(text string) bool {
	return len(text) == instantDigits && text[0] != '0' && strings.Trim(text, "0123456789") == ""
}
