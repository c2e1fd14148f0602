package funchost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// readEvent reads the one event of a request, binary or structured. Its errors are apierrors; the event
// is zero then. It does not use the SDK's receiver, in which all requests meet and wait for each other.
func readEvent(w http.ResponseWriter, r *http.Request) (event.Event, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		media = "" // a binary event without data needs none
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
		e, err = structuredEvent(body)
	} else {
		e, err = binaryEvent(r.Header, body)
	}
	if err == nil {
		err = e.Validate()
	}
	if err == nil && e.SpecVersion() != event.CloudEventsVersionV1 {
		err = errors.New("specversion must be 1.0")
	}
	if err != nil {
		return event.Event{}, apierror.New(apierror.InvalidEvent, "%s", strings.Join(strings.Fields(err.Error()), " "))
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

func structuredEvent(body []byte) (e event.Event, err error) {
	var members map[string]json.RawMessage
	if !utf8.Valid(body) || json.Unmarshal(body, &members) != nil || members == nil {
		return e, errors.New("the body must be one JSON object in UTF-8")
	}
	if members["data"] != nil && members["data_base64"] != nil {
		return e, errors.New("data and data_base64 exclude each other")
	}
	return e, e.UnmarshalJSON(body)
}

func binaryEvent(header http.Header, body []byte) (event.Event, error) {
	plain := http.Header{}
	for name, values := range header {
		switch {
		case name == "Content-Type":
			plain[name] = values[:1]
		case strings.HasPrefix(name, cePrefix):
			value, err := unescape(values[0])
			if err != nil || len(values) > 1 {
				return event.Event{}, errors.New("header " + name + " is given twice or wrongly encoded")
			}
			plain[name] = []string{value}
		}
	}
	message := cehttp.NewMessage(plain, io.NopCloser(bytes.NewReader(body)))
	e, err := binding.ToEvent(context.Background(), message)
	if err != nil {
		return event.Event{}, err
	}
	return *e, nil
}
