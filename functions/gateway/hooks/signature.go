package hooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/webhook"
)

// The names of the schemes in the file.
const (
	schemeStandard = "standard-webhooks"
	schemeGitHub   = "github"
	schemeStripe   = "stripe"
	schemeSlack    = "slack"
	schemeHeader   = "header"
)

// tolerance is how far a signed timestamp may be from now, in either direction.
const tolerance = 5 * time.Minute

// scheme verifies a request with any of the secrets, and returns an id of the message.
type scheme func(secrets [][]byte, h http.Header, body []byte, now time.Time) (id string, err error)

var (
	errForged = errors.New("the signature is by no secret of this hook")
	errStale  = fmt.Errorf("the signature's time is more than %s from now", tolerance)
)

func schemeOf(name, header string) (scheme, error) {
	if (name == schemeHeader) != (header != "") {
		return nil, fmt.Errorf("header is for the signature %q, which needs it", schemeHeader)
	}
	switch name {
	case schemeStandard:
		return standard, nil
	case schemeGitHub:
		return github, nil
	case schemeStripe:
		return stripe, nil
	case schemeSlack:
		return slack, nil
	case schemeHeader:
		return secretHeader(header), nil
	}
	return nil, fmt.Errorf("signature %q is none of %s", name, strings.Join([]string{
		schemeStandard, schemeGitHub, schemeStripe, schemeSlack, schemeHeader,
	}, ", "))
}

// standard is https://www.standardwebhooks.com. The id is signed.
func standard(secrets [][]byte, h http.Header, body []byte, now time.Time) (string, error) {
	texts := make([]string, len(secrets))
	for i, secret := range secrets {
		texts[i] = string(secret)
	}
	return webhook.Verify(texts, h, body, now)
}

// github signs only the body, without a time or an id. X-GitHub-Delivery is not signed, so the content identifies the
// message.
func github(secrets [][]byte, h http.Header, body []byte, _ time.Time) (string, error) {
	given, err := one(h, "X-Hub-Signature-256")
	if err != nil {
		return "", err
	}
	if !signed(secrets, []string{strings.TrimPrefix(given, "sha256=")}, body) {
		return "", errForged
	}
	return contentID(body), nil
}

// stripe signs "<time>.<body>". Each event has an id.
func stripe(secrets [][]byte, h http.Header, body []byte, now time.Time) (string, error) {
	given, err := one(h, "Stripe-Signature")
	if err != nil {
		return "", err
	}
	at, signatures := "", []string(nil)
	for part := range strings.SplitSeq(given, ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name {
		case "t":
			at = value
		case "v1":
			signatures = append(signatures, value)
		}
	}
	if !signed(secrets, signatures, []byte(at+"."), body) {
		return "", errForged
	}
	if err := recent(at, now); err != nil {
		return "", err
	}
	var event struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(body, &event) == nil && event.ID != "" {
		return event.ID, nil
	}
	return contentID(body), nil
}

// slack signs "v0:<time>:<body>". A repeated request has the same body.
func slack(secrets [][]byte, h http.Header, body []byte, now time.Time) (string, error) {
	given, err := one(h, "X-Slack-Signature")
	if err != nil {
		return "", err
	}
	at, err := one(h, "X-Slack-Request-Timestamp")
	if err != nil {
		return "", err
	}
	if !signed(secrets, []string{strings.TrimPrefix(given, "v0=")}, []byte("v0:"+at+":"), body) {
		return "", errForged
	}
	return contentID(body), recent(at, now)
}

// secretHeader compares a header with the secrets. Nothing is signed, so this is only for senders that cannot sign.
func secretHeader(name string) scheme {
	return func(secrets [][]byte, h http.Header, body []byte, _ time.Time) (string, error) {
		given, err := one(h, name)
		if err != nil {
			return "", err
		}
		hash, found := sha256.Sum256([]byte(given)), 0 // of equal length, for the comparison in constant time
		for _, secret := range secrets {
			want := sha256.Sum256(secret)
			found |= subtle.ConstantTimeCompare(hash[:], want[:])
		}
		if found != 1 {
			return "", fmt.Errorf("%s is no secret of this hook", name)
		}
		return contentID(body), nil
	}
}

// one returns a header that must occur exactly once: of two, a proxy and this function could use different ones.
func one(h http.Header, name string) (string, error) {
	values := h.Values(name)
	if len(values) != 1 {
		return "", fmt.Errorf("the request must have the header %s once", name)
	}
	return values[0], nil
}

// signed reports whether one of the signatures, in hexadecimal, is the HMAC-SHA256 of the parts with one of the
// secrets.
func signed(secrets [][]byte, signatures []string, parts ...[]byte) bool {
	found := false
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		for _, part := range parts {
			mac.Write(part)
		}
		want := mac.Sum(nil)
		for _, text := range signatures {
			given, err := hex.DecodeString(text)
			found = err == nil && hmac.Equal(given, want) || found
		}
	}
	return found
}

func recent(seconds string, now time.Time) error {
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return errStale
	}
	if d := now.Sub(time.Unix(at, 0)); d > tolerance || d < -tolerance {
		return errStale
	}
	return nil
}
