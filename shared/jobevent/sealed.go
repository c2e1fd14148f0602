package jobevent

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// SealedPrefix begins a value, a text or a JSON string, that only processes with a key can read. To all others it is
// opaque, and they must not cut it.
const SealedPrefix = "sealed:v1:"

// IsSealed reports whether a text is sealed.
func IsSealed(text string) bool { return strings.HasPrefix(text, SealedPrefix) }

// sealedMore is by how many bytes the cipher makes a value longer: its key's name, a nonce and a tag.
const sealedMore = 5 + 24 + 16

// SealedSize returns the length of a sealed value of n bytes.
func SealedSize(n int) int {
	return len(SealedPrefix) + base64.RawURLEncoding.EncodedLen(n+sealedMore)
}

// MaxMessage is how many bytes of a failure's message are kept, before it is sealed. The message is repeated in every
// status of its job, up to a hundred times.
const MaxMessage = 4 << 10

// CleanMessage makes a failure's message of any origin storable and short enough. A sealed message was cleaned before
// it was sealed.
func CleanMessage(text string) string {
	if IsSealed(text) {
		return CleanText(text, SealedSize(MaxMessage))
	}
	return CleanText(text, MaxMessage)
}

// CleanText makes a text of any origin one that PostgreSQL can store, that is not much longer in JSON, and that has at
// most this many bytes.
func CleanText(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= most {
		return text
	}
	for most -= len("…"); !utf8.RuneStart(text[most]); most-- {
	}
	return text[:most] + "…"
}
