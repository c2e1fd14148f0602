package migrations

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ReadPasswords reads the passwords of roles from folders, one file for each, named like the role. It reads no other
// file.
func ReadPasswords(dirs, roles []string) (map[string]string, error) {
	passwords := map[string]string{}
	for _, dir := range dirs {
		for _, role := range roles {
			text, err := os.ReadFile(filepath.Join(dir, role))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("read password: %w", err)
			}
			passwords[role] = strings.TrimSpace(string(text))
		}
	}
	if len(passwords) == 0 {
		return nil, fmt.Errorf("read passwords: %s has no file that is named as a role, such as %s",
			strings.Join(dirs, ", "), roles[0])
	}
	return passwords, nil
}

// scramVerifier returns what PostgreSQL stores of a password, by RFC 5803. So the password itself is never sent, and
// cannot be written to the server's log.
func scramVerifier(password string) (string, error) {
	// Only ASCII, which SASLprep does not change.
	if password == "" || strings.ContainsFunc(password, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", errors.New("a password is of printable ASCII, at least one character")
	}
	const rounds = 4096
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	salted, err := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	if err != nil {
		return "", err
	}
	stored := sha256.Sum256(sign(salted, "Client Key"))
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s",
		rounds, b64(salt), b64(stored[:]), b64(sign(salted, "Server Key"))), nil
}

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
