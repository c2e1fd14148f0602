package submit

import (
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf16"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// maxAttributes is the most bytes of the attributes that a job keeps of its event, in ASCII: FUNCTION sends them in a
// header, and many servers refuse headers of more than 8 KiB.
const maxAttributes = 4 << 10

// attributesOf returns the attributes of an event as a job keeps them: an object as in CloudEvents' JSON format,
// without the data, and without what is about its form. An attribute for which there is no room is left out, the
// extensions first: an event is never refused for an attribute that is not used.
func attributesOf(e event.Event) (json.RawMessage, error) {
	kept, left := map[string]any{}, maxAttributes-len("{}")
	for _, name := range attributeNames(e) {
		value := attribute(e, name)
		text, err := jobevent.Encode(value)
		if err != nil {
			return nil, err
		}
		if n := len(`"":,`) + len(name) + lenASCII(string(text)); n <= left {
			kept[name], left = value, left-n
		}
	}
	return jobevent.Encode(kept)
}

// attributeNames returns the names of an event's attributes in the order in which they get their room.
func attributeNames(e event.Event) []string {
	own := []string{"id", "source", "type", "time", "subject", "dataschema"}
	own = slices.DeleteFunc(own, func(name string) bool { return attribute(e, name) == "" })
	more := slices.Sorted(maps.Keys(e.Extensions()))
	return append(own, slices.DeleteFunc(more, func(name string) bool { return name == jobevent.ExtSignature })...)
}

// attribute returns the value of an attribute in CloudEvents' JSON format; empty: the event lacks it.
func attribute(e event.Event, name string) any {
	switch name {
	case "id":
		return e.ID()
	case "source":
		return e.Source()
	case "type":
		return e.Type()
	case "subject":
		return e.Subject()
	case "dataschema":
		return e.DataSchema()
	case "time":
		if e.Time().IsZero() {
			return ""
		}
		return types.FormatTime(e.Time())
	}
	switch value := e.Extensions()[name].(type) {
	case bool, int32:
		return value
	default:
		text, err := types.Format(value)
		if err != nil {
			return "" // cannot happen: the SDK accepts no value of another type
		}
		return text
	}
}

// lenASCII returns the length of JSON with an escape for each character outside ASCII.
func lenASCII(text string) (n int) {
	for _, r := range text {
		if n++; r > 0x7e {
			n += 6*utf16.RuneLen(r) - 1
		}
	}
	return n
}
