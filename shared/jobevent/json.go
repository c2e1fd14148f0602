package jobevent

import (
	"fmt"

	jsonv2 "github.com/go-json-experiment/json" // decodes three times as fast
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// encoding is that of encoding/json, but for its escapes: six bytes for each < of a payload, and a good job fits no
// record.
var encoding = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), jsontext.EscapeForJS(false))

// anyNames: a name that a payload has twice is its handler's business, and looking for it costs as much as the rest.
var anyNames = jsontext.AllowDuplicateNames(true)

// Encode writes data as JSON, with < > & as they are.
func Encode(data any) ([]byte, error) { return jsonv2.Marshal(data, encoding) }

// Decode returns the data of an item. Its errors wrap ErrInvalid.
func Decode[T any](it Item) (T, error) {
	if read, ok := it.read.(*T); ok {
		return *read, nil
	}
	var data T
	if err := jsonv2.Unmarshal(it.Data(), &data, anyNames); err != nil {
		return data, fmt.Errorf("decode %s %s: %w: %w", it.typ, it.id, err, ErrInvalid)
	}
	return data, nil
}

// DecodeAs is Decode for a handler that takes items of one type only.
func DecodeAs[T any](it Item, typ string) (T, error) {
	if it.typ != typ {
		var none T
		return none, fmt.Errorf("take event of type %q as %s: %w", it.typ, typ, ErrInvalid)
	}
	return Decode[T](it)
}
