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
	instantDigits = 10      // of an instant in seconds, from 2001 to 2286
)

// Why a signature was not accepted. None says which part of it would have been right.
var (
	errHeaders   = errors.New("needs one webhook-id, webhook-timestamp and webhook-signature, each as it should be")
	errTime      = errors.New("webhook-timestamp is more than 5 minutes from now")
	errSignature = errors.New("webhook-signature is by no secret that is known here")
)

// CallbackKeys know who may say what became of an attempt. A nil one knows nobody.
type CallbackKeys struct{ keys []key }

// NewCallbackKeys takes the secrets of CALLBACK_SECRETS.
func NewCallbackKeys(secrets []string) (*CallbackKeys, error) {
	keys, err := parse(nameCallback, secrets)
	return &CallbackKeys{keys}, err
}

// Empty says that there is no secret, so that no callback can be accepted.
func (k *CallbackKeys) Empty() bool { return k == nil || len(k.keys) == 0 }

// Secret is the secret of an attempt, by its jobevent.AttemptToken. Who holds it can speak for this attempt and for no
// other. Empty: there is none to make it of.
func (k *CallbackKeys) Secret(token string) string {
	if k.Empty() {
		return ""
	}
	return k.keys[0].of(token).text()
}

// of is the key of an attempt. What is signed by a key of the setting itself has two dots at least, a token has one:
// neither passes for the other.
func (k key) of(token string) key {
	mac := hmac.New(sha256.New, k.bytes())
	mac.Write([]byte(token))
	return newKey(mac.Sum(nil))
}

// CheckSecret says whether a text is the secret of the attempt, or one that speaks for all.
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

// Verify looks for a signature by the attempt's secret, or by one that speaks for all, not older than 5 minutes and not
// from later than that. It gives back the message's id, which the caller keeps as long so that it is taken once.
func (k *CallbackKeys) Verify(token string, h http.Header, body []byte, now time.Time) (id string, err error) {
	if k.Empty() {
		return "", errSignature
	}
	id, at, err := envelope(h)
	if err != nil {
		return "", err
	}
	if d := now.Sub(time.Unix(at, 0)); d > tolerance || d < -tolerance {
		return "", errTime
	}
	for _, own := range k.keys {
		for _, by := range []key{own.of(token), own} {
			if by.signer().VerifyIgnoringTimestamp(body, h) == nil { // now is not the library's to say
				return id, nil
			}
		}
	}
	return "", errSignature
}

// envelope reads the headers, in the one form in which each can be written.
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

// isID takes printable ASCII. What is signed is "id.timestamp.body": an id in which something after a dot looks like an
// instant could be cut in another place and still be signed.
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
