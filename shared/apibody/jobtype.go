package apibody

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobweaver/jobweaver/shared/payloadschema"
)

// Limits of what a worker reports about a job type.
const (
	MaxJobTypeBytes = 256 << 10
	maxSchemaBytes  = 64 << 10
	maxTitle        = 200
	maxDescription  = 4_000
)

// JobType is what a worker reports about a job type that it runs. A nil member: nothing.
type JobType struct {
	Title        *string         `json:"title,omitempty"`
	Description  *string         `json:"description,omitempty"`
	Schema       json.RawMessage `json:"schema,omitempty"`       // JSON Schema of the payload
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"` // JSON Schema of the output
}

// DecodeJobType reads the definition of a job type; an empty body has none. It returns all problems as an
// *apierror.Error.
func DecodeJobType(body []byte) (d JobType, err error) {
	if len(body) == 0 {
		return d, nil
	}
	r := newReader(body)
	r.Object(func() {
		switch string(r.Name) {
		case "title":
			d.Title = r.optionalText(maxTitle)
		case "description":
			d.Description = r.optionalText(maxDescription)
		case "schema":
			d.Schema = r.schema()
		case "outputSchema":
			d.OutputSchema = r.schema()
		default:
			r.Unknown()
		}
	})
	return d, r.Close().Err("job type")
}

func (r reader) optionalText(most int) *string {
	if r.Null() {
		return nil
	}
	text, _ := r.Text(most)
	return &text
}

// schema reads a JSON Schema that can be used.
func (r reader) schema() json.RawMessage {
	if r.Null() {
		return nil
	}
	if r.Peek() != jsontext.KindBeginObject {
		_ = r.Raw()
		r.Bad("must be an object")
		return nil
	}
	text := r.Raw().Clone()
	if len(text) > maxSchemaBytes {
		r.Bad("must have at most %d bytes", maxSchemaBytes)
		return nil
	}
	if err := text.Compact(jsontext.PreserveRawStrings(true)); err != nil {
		r.Bad("is not valid JSON")
		return nil
	}
	if _, err := payloadschema.CompileForeign(json.RawMessage(text)); err != nil {
		r.Bad("is no JSON Schema that can be used: %s", err)
		return nil
	}
	return json.RawMessage(text)
}
