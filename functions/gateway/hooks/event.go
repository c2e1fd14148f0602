package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// eventMembers are those of the event of a hook.
var eventMembers = []string{"type", "source", "subject", "data"}

func compileEvent(template map[string]any) (node, error) {
	for _, name := range slices.Sorted(maps.Keys(template)) {
		if !slices.Contains(eventMembers, name) {
			return nil, fmt.Errorf("event: %s is not one of %s", name, strings.Join(eventMembers, ", "))
		}
	}
	if template["type"] == nil {
		return nil, errors.New("event has no type")
	}
	event, err := compile(template)
	if err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	return event, nil
}

// Event makes the event of a request, and its attributes as they are stored. The id of the message is the event's, so
// that a message is one event however often it is sent.
func (h *Hook) Event(
	header http.Header, body []byte, id string,
) (e waitstore.Event, attributes json.RawMessage, err error) {
	in, err := read(header, body)
	if err != nil {
		return e, nil, apierror.New(apierror.InvalidEvent, "%s", err)
	}
	made, err := h.event.value(in)
	if err != nil {
		return e, nil, apierror.New(apierror.InvalidEvent, "%s", err)
	}
	event, _ := made.(map[string]any)
	if event["source"] == nil {
		event["source"] = "/hooks/" + h.Name
	}
	event["id"] = readable(id)
	e = waitstore.Event{OwnerID: h.Owner, ID: readable(id), Data: body}
	for name, to := range map[string]*string{"type": &e.Type, "source": &e.Source, "subject": &e.Subject} {
		if event[name] == nil {
			continue
		}
		text, ok := event[name].(string)
		if !ok || len(text) > jobspec.MaxMessage || strictjson.CheckLabel(text) != "" {
			return e, nil, apierror.New(apierror.InvalidEvent, "the %s of the event is no text without control characters", name)
		}
		*to = text
	}
	if data, ok := event["data"]; ok {
		var text boundedText
		if err := jsonv2.MarshalWrite(&text, data, strictjson.AsEncodingJSON, jsontext.EscapeForHTML(false)); err != nil {
			return e, nil, err
		}
		e.Data = json.RawMessage(text)
		delete(event, "data")
	}
	attributes, err = jsonv2.Marshal(event, jsonv2.Deterministic(true))
	return e, attributes, err
}

// EventType returns the constant type of the hook's events; empty: each request decides, or becomes a job.
func (h *Hook) EventType() string { return constantOf(h.event, "type") }

// JobType returns the constant job type of the hook's jobs; empty: each request decides, or becomes an event.
func (h *Hook) JobType() string { return constantOf(h.job, "jobType") }

func constantOf(template node, member string) string {
	of, _ := template.(object)
	value, _ := of[member].(constant)
	text, _ := value.of.(string)
	return strings.TrimSpace(text)
}
