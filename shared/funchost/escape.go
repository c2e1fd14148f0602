package funchost

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// CloudEvents' HTTP binding has attributes percent-encoded in headers; the SDK does neither direction
// (sdk-go #1331).

const cePrefix = "Ce-"

func escapeHeaders(header http.Header) {
	for name, values := range header {
		if strings.HasPrefix(name, cePrefix) {
			for i := range values {
				values[i] = escape(values[i])
			}
		}
	}
}

// escape encodes what is not printable ASCII, and space, quote and per cent.
func escape(value string) string {
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c > '~' || c == '"' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unescape undoes quotes, then per cent signs, once.
func unescape(value string) (string, error) {
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		value = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(value[1 : len(value)-1])
	}
	plain, err := url.PathUnescape(value)
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(plain) {
		return "", fmt.Errorf("%q is not UTF-8", value)
	}
	return plain, nil
}
