package webhook

import (
	"encoding/base64"
	"fmt"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/jobweaver/jobweaver/shared/secret"
)

const (
	prefix       = "whsec_"
	minKey       = 24
	maxKey       = 64
	nameSigning  = "WEBHOOK_SECRETS"
	nameCallback = "CALLBACK_SECRETS"
)

// Config has the secrets that sign outgoing requests.
type Config struct {
	Secrets secret.Texts `envconfig:"WEBHOOK_SECRETS" desc:"secrets that sign calls and deliveries: whsec_ and 24 to 64 bytes of base64, separated by commas; all sign, so that a new one can be introduced beside the old"`
}

// CallbackConfig has the secrets that authenticate callbacks.
type CallbackConfig struct {
	Secrets secret.Texts `envconfig:"CALLBACK_SECRETS" desc:"secrets of callbacks, in the form of WEBHOOK_SECRETS: the secret of each attempt is derived from the first, all are accepted; they must differ from WEBHOOK_SECRETS; empty: every callback is refused"`
}

// key is one secret. It is a function, so that printing a key does not show its content.
type key func() (bytes []byte, text string)

func (k key) bytes() []byte { bytes, _ := k(); return bytes }

func (k key) text() string { _, text := k(); return text }

func (k key) signer() *standardwebhooks.Webhook {
	w, _ := standardwebhooks.NewWebhookRaw(k.bytes()) // has no error to return
	return w
}

func newKey(bytes []byte) key {
	text := prefix + base64.StdEncoding.EncodeToString(bytes)
	return func() ([]byte, string) { return bytes, text }
}

// parse reads the secrets of a setting. Its error begins with the setting's name, and shows no part of a secret.
func parse(setting string, secrets []string) ([]key, error) {
	var keys []key
	for i, text := range secrets {
		encoded, found := strings.CutPrefix(strings.TrimSpace(text), prefix)
		bytes, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if !found || err != nil || len(bytes) < minKey || len(bytes) > maxKey {
			return nil, fmt.Errorf("%s: number %d of %d is not %s and %d to %d bytes of base64",
				setting, i+1, len(secrets), prefix, minKey, maxKey)
		}
		keys = append(keys, newKey(bytes))
	}
	return keys, nil
}
