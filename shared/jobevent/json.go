package jobevent

import (
	"fmt"

	jsonv2 "github.com/go-json-experiment/json" // it decodes three times as fast as encoding/json
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// encoding is that of encoding/json without its escapes: with six bytes for each < of a payload, a valid job might not
// fit into a record.
var encoding = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), jsontext.EscapeForJS(false))

// anyNames accepts repeated names: they matter only to the handler of a payload, and looking for them costs as much as
// the rest.
var anyNames = jsontext.AllowDuplicateNames(true)

// Encode writes data as JSON, with < > & unescaped.
func Encode(data any) ([]byte, error) { return jsonv2.Marshal(data, encoding) }

// Decode returns the data of an item. Its errors wrap ErrInvalid.
func Decode[T any](it Item) (T, error) {
	if read, ok := it.read.(*T); ok {
		return *read, nil
	}
	var data T
	if err := jsonv2.Unmarshal(it.Data(), &data, anyNames); err != nil {
		return data, fmt.Errorf("decode %s: %w: %w", it, err, ErrInvalid)
	}
	return data, nil
}

// DecodeAs is Decode for a handler that takes only items of one type.
func DecodeAs[T any](it Item, typ string) (T, error) {
	if it.typ != typ {
		var none T
		return none, fmt.Errorf("take event of type %q as %s: %w", it.typ, typ, ErrInvalid)
	}
	return Decode[T](it)
}
