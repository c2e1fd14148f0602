// Package apikey makes and parses the API keys that authenticate requests. A key is never stored, only its id, which is
// not secret, and a hash.
//
//	jw_<id: 12 of a-z2-7>_<secret: 43 of base62, 256 random bits><check: 6 of base62, CRC-32 of all before it>
//
// So scanners for leaked secrets can recognize a key, and a mistyped key is refused without a look-up.
package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"hash/crc32"
	"log/slog"
	"math/big"
	"strings"
)

const (
	prefix    = "jw_"
	idLen     = 12
	secretLen = 43
	checkLen  = 6

	secretAt = len(prefix) + idLen + 1
	checkAt  = secretAt + secretLen
	length   = checkAt + checkLen
)

const (
	base62   = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	idDigits = "abcdefghijklmnopqrstuvwxyz234567"
)

// Key is a whole key, as its holder has it. It shows only its id, however it is printed.
type Key struct{ text string }

// New makes a key.
func New() Key {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	text := prefix + strings.ToLower(rand.Text()[:idLen]) + "_" + digits(new(big.Int).SetBytes(secret[:]), secretLen)
	return Key{text + check(text)}
}

// Parse reads a key. ok means only that the text has the form of a key.
func Parse(text string) (key Key, ok bool) {
	if len(text) != length || text[:len(prefix)] != prefix || text[secretAt-1] != '_' ||
		!made(text[len(prefix):secretAt-1], idDigits) || !made(text[secretAt:], base62) ||
		check(text[:checkAt]) != text[checkAt:] {
		return Key{}, false
	}
	return Key{text}, true
}

// CheckID reports whether a text has the form of a key's id.
func CheckID(text string) bool { return len(text) == idLen && made(text, idDigits) }

// ID names the key to people, and in logs. It reveals nothing of the secret.
func (k Key) ID() string {
	if k.text == "" {
		return ""
	}
	return k.text[len(prefix) : secretAt-1]
}

// Reveal returns the whole key, for its holder.
func (k Key) Reveal() string { return k.text }

// Hash returns the hash that is stored. The secret has 256 random bits, which cannot be guessed, so no slow hash is
// needed.
func (k Key) Hash() [sha256.Size]byte { return sha256.Sum256([]byte(k.text)) }

// Matches reports whether a stored hash is this key's, in constant time.
func (k Key) Matches(hash []byte) bool {
	own := k.Hash()
	return subtle.ConstantTimeCompare(own[:], hash) == 1
}

// String shows the id only.
func (k Key) String() string { return prefix + k.ID() + "_…" }

// GoString shows the id only.
func (k Key) GoString() string { return k.String() }

// LogValue shows the id only.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText shows the id only. To hand a key out, use Reveal.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

func check(text string) string {
	return digits(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(text)))), checkLen)
}

// digits returns a number in base62, the highest digit first.
func digits(n *big.Int, length int) string {
	text, base, digit := make([]byte, length), big.NewInt(int64(len(base62))), new(big.Int)
	for i := length - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		text[i] = base62[digit.Int64()]
	}
	return string(text)
}

func made(text, of string) bool {
	for i := range len(text) {
		if strings.IndexByte(of, text[i]) < 0 {
			return false
		}
	}
	return true
}
