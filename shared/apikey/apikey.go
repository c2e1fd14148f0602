// Package apikey makes and reads the keys by which requests say whose they are. A key is never stored: what is
// kept of it is its id, which is no secret, and a hash.
//
//	jw_<id: 12 of a-z2-7>_<secret: 43 of base62, 256 random bits><check: 6 of base62, CRC-32 of all before it>
//
// So what scans for leaked secrets knows one when it sees it, and a mistyped one is known without asking anybody.
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

// Key is a key as its holder has it. However it is printed, it shows its id only.
type Key struct{ text string }

// New makes a key.
func New() Key {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	text := prefix + strings.ToLower(rand.Text()[:idLen]) + "_" + digits(new(big.Int).SetBytes(secret[:]), secretLen)
	return Key{text + check(text)}
}

// Parse reads a key; ok says that it has the form of one, nothing more.
func Parse(text string) (key Key, ok bool) {
	if len(text) != length || text[:len(prefix)] != prefix || text[secretAt-1] != '_' ||
		!made(text[len(prefix):secretAt-1], idDigits) || !made(text[secretAt:], base62) ||
		check(text[:checkAt]) != text[checkAt:] {
		return Key{}, false
	}
	return Key{text}, true
}

// CheckID says whether a text has the form of a key's id.
func CheckID(text string) bool { return len(text) == idLen && made(text, idDigits) }

// ID names the key to people, and in logs. Whoever knows it knows nothing of the secret.
func (k Key) ID() string {
	if k.text == "" {
		return ""
	}
	return k.text[len(prefix) : secretAt-1]
}

// Reveal is the whole key, for its holder.
func (k Key) Reveal() string { return k.text }

// Hash is what is stored. The secret has 256 random bits: nobody guesses it, so it needs no slow hash.
func (k Key) Hash() [sha256.Size]byte { return sha256.Sum256([]byte(k.text)) }

// Matches says whether a stored hash is this key's, in the same time whatever differs.
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

// MarshalText shows the id only: who wants to hand a key out says Reveal.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

func check(text string) string {
	return digits(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(text)))), checkLen)
}

// digits is a number in base62, the highest digit first.
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
