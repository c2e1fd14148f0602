package sink

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/jobweaver/jobweaver/shared/httpevent"
)

// escapeHeaders does what the SDK leaves out (sdk-go #1331): CloudEvents' HTTP binding has the values of
// attributes percent-encoded.
func escapeHeaders(header http.Header) {
	for name, values := range header {
		if strings.HasPrefix(name, httpevent.HeaderPrefix) {
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
