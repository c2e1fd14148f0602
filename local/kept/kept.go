// Package kept makes secrets at a first start and finds them again at the next ones.
package kept

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// Kind is the kind of secret in a file.
type Kind struct {
	name  string
	fresh func() string
	valid func(text string) bool
}

// APIKey is a key of the API.
func APIKey() Kind {
	return Kind{"an API key", func() string { return apikey.New().Reveal() }, func(text string) bool {
		_, ok := apikey.Parse(text)
		return ok
	}}
}

// SigningSecret is a secret for WEBHOOK_SECRETS or CALLBACK_SECRETS.
func SigningSecret() Kind {
	return Kind{"a secret", func() string {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		return "whsec_" + base64.StdEncoding.EncodeToString(key)
	}, func(text string) bool {
		_, err := webhook.NewSigner([]string{text})
		return err == nil
	}}
}

// Password is a password without characters that any program would have to escape.
func Password() Kind {
	return Kind{"a password", rand.Text, func(text string) bool {
		return text != "" && !strings.ContainsAny(text, " \n\t:\\")
	}}
}

// New returns a new secret.
func (k Kind) New() string { return k.fresh() }

// At returns the secret in the file. If the file does not exist, it makes a new secret and writes the file.
func (k Kind) At(path string, mode fs.FileMode) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		fresh := k.fresh()
		return fresh, Write(path, fresh, mode)
	}
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	kept := strings.TrimSpace(string(text))
	if !k.valid(kept) {
		return "", fmt.Errorf("%s does not hold %s; take it away, and a new one is made", path, k.name)
	}
	return kept, nil
}

// Write writes a line into a file. A reader never sees only a part of it.
func Write(path, text string, mode fs.FileMode) error {
	part := path + ".part"
	_ = os.Remove(part) // a crash may have left the file, with another mode
	err := os.WriteFile(part, []byte(text+"\n"), 0o600)
	if err == nil {
		err = errors.Join(os.Chmod(part, mode), os.Rename(part, path)) // whatever the umask is
	}
	if err != nil {
		return fmt.Errorf("keep secret: %w", err)
	}
	return nil
}
