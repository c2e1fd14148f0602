package sink

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/jobweaver/jobweaver/shared/httpevent"
)

// escapeHeaders percent-encodes the values of attributes, as CloudEvents' HTTP binding requires. The SDK does not do so
// (sdk-go #1331).
func escapeHeaders(header http.Header) {
	for name, values := range header {
		if strings.HasPrefix(name, httpevent.HeaderPrefix) {
			for i := range values {
				values[i] = escape(values[i])
			}
		}
	}
}

// escape encodes all characters except printable ASCII, and of these space, quote and per cent.
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
