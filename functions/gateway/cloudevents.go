package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

const (
	maxEventBytes = jobspec.MaxJobBytes + 64<<10 // a job's and an envelope's
	// maxIdentity bounds source and id together: an index entry holds both.
	maxIdentity = 2_000
)

// received is what a request to /events carries.
type received struct {
	events []event.Event
	batch  bool
	data   bool // an event's data stands in a member of that name
}

// readEvents reads one event or a batch, in any of CloudEvents' three modes. It does not use the SDK's
// receiver, in which all requests meet and wait for each other.
func readEvents(c *gin.Context) (received, error) {
	media, err := mediaType(c)
	if err != nil {
		return received{}, err
	}
	switch {
	case media == event.ApplicationCloudEventsBatchJSON:
		events, err := readBatch(c)
		return received{events: events, batch: true, data: true}, err
	case media == event.ApplicationCloudEventsJSON:
		body, err := readBody(c, maxEventBytes)
		if err != nil {
			return received{}, err
		}
		if !jsontext.Value(body).IsValid() {
			return received{}, apierror.New(apierror.InvalidEvent,
				"the body must be one JSON object in UTF-8, each name in it once")
		}
		e, err := decodeEvent(body)
		return received{events: []event.Event{e}, data: true}, err
	case !strings.HasPrefix(media, "application/cloudevents") && c.GetHeader("Ce-Specversion") != "":
		e, err := readBinary(c)
		return received{events: []event.Event{e}}, err
	}
	return received{}, apierror.New(apierror.UnsupportedMediaType,
		"%q is no CloudEvent: it takes %s, %s, or Ce- headers", media,
		event.ApplicationCloudEventsJSON, event.ApplicationCloudEventsBatchJSON)
}

func readBatch(c *gin.Context) ([]event.Event, error) {
	body, err := readBody(c, jobspec.MaxBatchBytes)
	if err != nil {
		return nil, err
	}
	var raws []json.RawMessage
	if !jsontext.Value(body).IsValid() {
		return nil, apierror.New(apierror.InvalidEvent, "the body must be one JSON array in UTF-8, each name in it once")
	}
	if err := json.Unmarshal(body, &raws); err != nil || raws == nil {
		return nil, apierror.New(apierror.InvalidEvent, "the body must be an array of events")
	}
	if len(raws) > jobspec.MaxBatchJobs {
		return nil, apierror.New(apierror.PayloadTooLarge, "a batch may have at most %d events, this one has %d",
			jobspec.MaxBatchJobs, len(raws))
	}
	events := make([]event.Event, len(raws))
	for i, raw := range raws {
		if events[i], err = decodeEvent(raw); err != nil {
			in := received{events: events, batch: true}
			return nil, in.at(i, err)
		}
	}
	return events, nil
}

// decodeEvent reads valid JSON as an event. Its data is taken out first: white space before data_base64
// misleads the SDK, and what is too short there makes it panic.
func decodeEvent(raw []byte) (e event.Event, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return e, apierror.New(apierror.InvalidEvent, "an event must be a JSON object")
	}
	data, plain := members["data"]
	in64, encoded := members["data_base64"]
	delete(members, "data")
	delete(members, "data_base64")
	attributes, err := json.Marshal(members)
	if err != nil {
		return e, fmt.Errorf("write attributes: %w", err)
	}
	if err := e.UnmarshalJSON(attributes); err != nil {
		return e, apierror.New(apierror.InvalidEvent, "the attributes are no CloudEvent's: %s", err)
	}
	if plain && encoded {
		return e, apierror.New(apierror.InvalidEvent, "data and data_base64 exclude each other")
	}
	e.DataEncoded = data
	if encoded {
		if err := json.Unmarshal(in64, &e.DataEncoded); err != nil {
			return e, apierror.New(apierror.InvalidEvent, "data_base64 must be a string in base64")
		}
	}
	return e, nil
}

// readBinary reads an event whose attributes are headers and whose data is the body.
func readBinary(c *gin.Context) (event.Event, error) {
	header := http.Header{}
	for name, values := range c.Request.Header {
		if name != "Content-Type" && !strings.HasPrefix(name, "Ce-") {
			continue
		}
		value := values[0]
		if strings.HasPrefix(name, "Ce-") {
			var ok bool
			if value, ok = unescape(value); !ok || len(values) > 1 {
				return event.Event{}, apierror.New(apierror.InvalidEvent, "header %s is given twice or wrongly encoded", name)
			}
		}
		header[name] = []string{value}
	}
	body, err := readBody(c, jobspec.MaxJobBytes)
	if err != nil {
		return event.Event{}, err
	}
	message := cehttp.NewMessage(header, io.NopCloser(bytes.NewReader(body)))
	e, err := binding.ToEvent(context.Background(), message)
	if err != nil {
		return event.Event{}, apierror.New(apierror.InvalidEvent, "the Ce- headers are no CloudEvent: %s", err)
	}
	return *e, nil
}

// unescape undoes what CloudEvents' HTTP binding does to an attribute, once: quotes, then per cent signs.
func unescape(value string) (string, bool) {
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		value = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(value[1 : len(value)-1])
	}
	value, err := url.PathUnescape(value)
	return value, err == nil && utf8.ValidString(value)
}

// checkEvent refuses what breaks the specification, and what cannot be kept or read.
func checkEvent(e event.Event) error {
	refuse := func(format string, args ...any) error { return apierror.New(apierror.InvalidEvent, format, args...) }
	if err := e.Validate(); err != nil {
		return refuse("%s", strings.Join(strings.Fields(err.Error()), " "))
	}
	if e.SpecVersion() != event.CloudEventsVersionV1 {
		return refuse("specversion must be 1.0, not %q", e.SpecVersion())
	}
	identity := e.Source() + e.ID()
	if len(identity) > maxIdentity {
		return refuse("source and id may have at most %d bytes together", maxIdentity)
	}
	if strings.ContainsFunc(identity, unicode.IsControl) || !utf8.ValidString(identity) {
		return refuse("source and id must not have control characters")
	}
	media, _, err := mime.ParseMediaType(e.DataContentType())
	if e.DataContentType() != "" && (err != nil || media != "application/json" && !strings.HasSuffix(media, "+json")) {
		return refuse("the data must be JSON, not %q", e.DataContentType())
	}
	return nil
}
