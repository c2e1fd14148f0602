package funchost

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/httpevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// readEvent reads the only event of a request, in binary or structured mode. Its errors are apierrors; then the event
// is zero.
func readEvent(w http.ResponseWriter, r *http.Request) (event.Event, error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return event.Event{}, apierror.New(apierror.UnsupportedMediaType, "an event must not be encoded as %q", encoding)
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		media = "" // a binary event without data needs no content type
	}
	structured := media == event.ApplicationCloudEventsJSON
	if !structured && (strings.HasPrefix(media, "application/cloudevents") || r.Header.Get("Ce-Specversion") == "") {
		return event.Event{}, apierror.New(apierror.UnsupportedMediaType,
			"%q is no CloudEvent: one event is taken, as %s or in Ce- headers", media, event.ApplicationCloudEventsJSON)
	}
	body, err := readBody(w, r)
	if err != nil {
		return event.Event{}, err
	}
	var e event.Event
	if structured {
		e, err = httpevent.Structured(body)
	} else {
		e, err = httpevent.Binary(r.Header, body)
	}
	if err != nil {
		return event.Event{}, apierror.New(apierror.InvalidEvent, "%s", err)
	}
	return e, nil
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, kafkaevent.MessageLimit))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, apierror.New(apierror.PayloadTooLarge, "an event may have at most %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return nil, apierror.New(apierror.InvalidEvent, "the body cannot be read")
	}
	return body, nil
}
