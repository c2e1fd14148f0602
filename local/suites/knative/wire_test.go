package knative

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/httpevent"
)

// failure is a failed request; without a status there was no answer.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return fmt.Sprintf("status %d: %s", f.status, f.text) }

func isAgain(err error) bool {
	failed := (*failure)(nil)
	return errors.As(err, &failed) && (failed.status == 0 || isRetried(failed.status))
}

func codeOf(err error) string {
	failed := (*failure)(nil)
	if errors.As(err, &failed) {
		return strconv.Itoa(failed.status)
	}
	return "500"
}

// readEvent reads the one event of a request, in binary or structured mode.
func readEvent(r *http.Request) (event.Event, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return event.Event{}, err
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), event.ApplicationCloudEventsJSON) {
		return httpevent.Structured(body)
	}
	return httpevent.Binary(r.Header, body)
}

// escapeHeaders encodes characters that a header must not contain, as CloudEvents' HTTP binding requires.
func escapeHeaders(header http.Header) {
	for name, values := range header {
		if !strings.HasPrefix(name, httpevent.HeaderPrefix) {
			continue
		}
		var b strings.Builder
		for _, c := range []byte(values[0]) {
			if c <= ' ' || c > '~' || c == '"' || c == '%' {
				fmt.Fprintf(&b, "%%%02X", c)
			} else {
				b.WriteByte(c)
			}
		}
		header[name] = []string{b.String()}
	}
}
