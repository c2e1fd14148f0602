// Package httpevent reads CloudEvents 1.0 from HTTP requests. Every event that it returns is valid, and no request
// makes it panic. It uses the SDK only for attributes: the SDK's receiver mixes up requests, and its JSON reader panics
// on short data_base64 and on old events.
package httpevent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/go-json-experiment/json/jsontext"
)

// HeaderPrefix is the beginning of the name of each attribute's header, in canonical form.
const HeaderPrefix = "Ce-"

var errVersion = errors.New("specversion must be 1.0")

var errJSON = errors.New("the body must be one JSON value in UTF-8, each name in it once")

// Structured reads one event in CloudEvents' JSON format.
func Structured(body []byte) (event.Event, error) {
	if !jsontext.Value(body).IsValid() {
		return event.Event{}, errJSON
	}
	return decode(body)
}

// Batch splits a JSON array into its events, each of which Structured can read.
func Batch(body []byte) ([]json.RawMessage, error) {
	if !jsontext.Value(body).IsValid() {
		return nil, errJSON
	}
	var events []json.RawMessage
	if err := json.Unmarshal(body, &events); err != nil || events == nil {
		return nil, errors.New("the body must be an array of events")
	}
	return events, nil
}

// Binary reads an event whose attributes are headers and whose data is the body. It ignores all other headers, and
// extensions that are not valid: most are not for JobWeaver, and Knative never sends an event again that was refused.
func Binary(header http.Header, body []byte) (event.Event, error) {
	attributes := http.Header{}
	for name, values := range header {
		attribute, found := strings.CutPrefix(name, HeaderPrefix)
		attribute = strings.ToLower(attribute)
		switch {
		case !found && name != "Content-Type":
			continue
		case !found && len(values) == 1:
			attributes[name] = values
			continue
		}
		value, err := headerValue(name, attribute, values)
		switch {
		case err == nil:
			attributes[name] = []string{value}
		case !found || slices.Contains(core, attribute):
			return event.Event{}, err
		}
	}
	if attributes.Get(HeaderPrefix+"Specversion") != event.CloudEventsVersionV1 {
		return event.Event{}, errVersion
	}
	if at, given := attributes[HeaderPrefix+"Time"]; given {
		at[0] = strings.ToUpper(at[0])
	}
	message := cehttp.NewMessage(attributes, io.NopCloser(bytes.NewReader(body)))
	e, err := binding.ToEvent(context.Background(), message)
	if err != nil {
		return event.Event{}, fmt.Errorf("read attributes: %w", err)
	}
	return *e, check(*e)
}

// core are the attributes of the specification that an event may have; all others are extensions.
var core = []string{
	"id", "source", "specversion", "type", "subject", "time", "datacontenttype", "dataschema",
	"data", // no attribute: an SDK would take it for the body
}

// headerValue returns the value of an attribute's header.
func headerValue(name, attribute string, values []string) (string, error) {
	if len(values) > 1 {
		return "", fmt.Errorf("header %s is given twice", name)
	}
	value := unescape(values[0])
	if !utf8.ValidString(value) {
		return "", fmt.Errorf("header %s is not UTF-8", name)
	}
	return value, checkAttribute(attribute, value)
}

// decode reads valid JSON. It takes the data out first and reads it itself, because the SDK reads it incorrectly.
func decode(raw []byte) (e event.Event, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return e, errors.New("an event must be a JSON object")
	}
	var version string
	if err := json.Unmarshal(members["specversion"], &version); err != nil || version != event.CloudEventsVersionV1 {
		return e, errVersion
	}
	data, in64 := members["data"], members["data_base64"]
	delete(members, "data")
	delete(members, "data_base64")
	if err := checkMembers(members); err != nil {
		return e, err
	}
	attributes, err := json.Marshal(members)
	if err != nil {
		return e, fmt.Errorf("write attributes: %w", err)
	}
	if err := e.UnmarshalJSON(attributes); err != nil {
		return e, fmt.Errorf("read attributes: %w", err)
	}
	if e.DataEncoded, err = decodeData(e, data, in64); err != nil {
		return e, err
	}
	return e, check(e)
}

func decodeData(e event.Event, data, in64 json.RawMessage) ([]byte, error) {
	if data != nil && in64 != nil {
		return nil, errors.New("data and data_base64 exclude each other")
	}
	if in64 != nil {
		var decoded []byte
		if err := json.Unmarshal(in64, &decoded); err != nil {
			return nil, errors.New("data_base64 must be a string in base64")
		}
		return decoded, nil
	}
	var text string
	if !IsJSON(e) && json.Unmarshal(data, &text) == nil {
		return []byte(text), nil // data of another type is in a string
	}
	return data, nil
}

// check also refuses an older version of CloudEvents, which the SDK accepts.
func check(e event.Event) error {
	if err := e.Validate(); err != nil {
		return errors.New(strings.Join(strings.Fields(err.Error()), " ")) // the SDK's error has several lines
	}
	if e.SpecVersion() != event.CloudEventsVersionV1 {
		return errVersion
	}
	return nil
}

// noURI recognizes the ASCII characters that no URI has. Other characters are accepted, as in an IRI.
func noURI(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("\"<>\\^`{|}", r) }

// checkAttribute refuses values that are invalid but accepted by the SDK.
func checkAttribute(name, value string) error {
	switch {
	case !attributeName.MatchString(name):
		return fmt.Errorf("attribute name %q must consist of lower-case letters and digits", name)
	case name == "data":
		return errors.New("data is no attribute: it is the body")
	case name == "source" && strings.ContainsFunc(value, noURI):
		return fmt.Errorf("source must be a URI-reference, not %q", value)
	case value == "" && (name == "subject" || name == "dataschema" || name == "datacontenttype"):
		return fmt.Errorf("%s must not be empty; leave it out", name)
	case name == "datacontenttype" && !strings.Contains(value, "/"):
		return fmt.Errorf("datacontenttype must be a media type, not %q", value)
	}
	return nil
}

var attributeName = regexp.MustCompile(`^[a-z0-9]+$`)

// checkMembers is checkAttribute for the members of a JSON object. It also refuses numbers that are not integers, and
// rewrites the time so that the SDK can read it: RFC 3339 also allows lower-case letters.
func checkMembers(members map[string]json.RawMessage) error {
	for name, raw := range members {
		value := string(raw)
		if value == "null" { // counts as absent
			delete(members, name)
			continue
		}
		if number := raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'; number && strings.ContainsAny(value, ".eE") {
			return fmt.Errorf("attribute %s must not be %s: only integers are allowed", name, value)
		}
		if raw[0] == '"' {
			if err := json.Unmarshal(raw, &value); err != nil {
				return fmt.Errorf("read attribute %s: %w", name, err)
			}
		}
		if err := checkAttribute(name, value); err != nil {
			return err
		}
	}
	if at, given := members["time"]; given {
		members["time"] = bytes.ToUpper(at)
	}
	return nil
}

// IsJSON reports whether an event's data is JSON.
func IsJSON(e event.Event) bool {
	if e.DataContentType() == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(e.DataContentType())
	return err == nil && (media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json"))
}

// unescape undoes the encoding of an attribute's value by CloudEvents' HTTP binding, once: first quotes, then
// percent-encoding. The SDK does not (sdk-go #1331). A % that begins no escape is an ordinary character, as in the
// URLs of browsers, and so is every % of a value that is not UTF-8 when it is decoded: the data plane of Knative and
// most SDKs encode nothing, so that an id such as 10% arrives as it is.
func unescape(value string) string {
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		value = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(value[1 : len(value)-1])
	}
	plain := escape.ReplaceAllStringFunc(value, func(text string) string {
		char, _ := strconv.ParseUint(text[1:], 16, 8) // the expression matches only digits
		return string([]byte{byte(char)})
	})
	if !utf8.ValidString(plain) {
		return value
	}
	return plain
}

var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
