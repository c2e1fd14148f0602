package waitstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxDepth = 8   // of the members of an event's data that a wait can name
	maxKeys  = 500 // of an event
)

// The attributes of an event that a wait can name. They begin with a character that separates them from members of the
// data.
const (
	attributeSource  = "\x00source"
	attributeSubject = "\x00subject"
)

// keyOf returns the hash of a member of an event, or of a whole type: of events of this owner and type that have this
// value in this place.
func keyOf(owner, eventType, path string, value jsontext.Value) int64 {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(owner), []byte(eventType), []byte(path), value} {
		var size [4]byte
		binary.BigEndian.PutUint32(size[:], uint32(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
	return int64(binary.BigEndian.Uint64(h.Sum(nil)))
}

// canonical returns a scalar in its only form: 7, 7.0 and 70e-1 are one number.
func canonical(value json.RawMessage) jsontext.Value {
	v := jsontext.Value(slices.Clone(value))
	if v.Canonicalize() != nil {
		return jsontext.Value(value) // a number beyond the range of a double is its own text
	}
	return v
}

// text returns a text as JSON.
func text(s string) jsontext.Value {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string has a JSON text
	}
	return canonical(b)
}

// keysOfWait returns the hashes of what a wait names; of its type alone, if it names nothing.
func keysOfWait(owner string, asked *EventWait) []int64 {
	keys := []int64{keyOf(owner, asked.Type, "", nil)}
	if asked.Source != "" {
		keys = append(keys, keyOf(owner, asked.Type, attributeSource, text(asked.Source)))
	}
	if asked.Subject != "" {
		keys = append(keys, keyOf(owner, asked.Type, attributeSubject, text(asked.Subject)))
	}
	for _, path := range slices.Sorted(maps.Keys(asked.Match)) {
		keys = append(keys, keyOf(owner, asked.Type, path, canonical(asked.Match[path])))
	}
	return keys
}

// keysOfEvent returns the hashes of all that a wait can name of an event: its type, source and subject, and each member
// of its data that is a text, a number, a boolean or null, by its path (order.id).
func keysOfEvent(owner string, e *Event) []int64 {
	keys := []int64{
		keyOf(owner, e.Type, "", nil),
		keyOf(owner, e.Type, attributeSource, text(e.Source)),
		keyOf(owner, e.Type, attributeSubject, text(e.Subject)),
	}
	members(e.Data, "", maxDepth, func(path string, value json.RawMessage) bool {
		keys = append(keys, keyOf(owner, e.Type, path, canonical(value)))
		return len(keys) < maxKeys
	})
	return keys
}

// members calls yield with each scalar in an object, until it returns false.
func members(object json.RawMessage, prefix string, depth int, yield func(string, json.RawMessage) bool) bool {
	var of map[string]json.RawMessage
	if depth == 0 || !bytes.HasPrefix(bytes.TrimSpace(object), []byte("{")) || json.Unmarshal(object, &of) != nil {
		return true
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		path, value := join(prefix, name), bytes.TrimSpace(of[name])
		switch {
		case value[0] == '{':
			if !members(value, path, depth-1, yield) {
				return false
			}
		case value[0] == '[':
		case !yield(path, value):
			return false
		}
	}
	return true
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
