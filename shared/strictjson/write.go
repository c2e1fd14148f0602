package strictjson

import (
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// AsEncodingJSON makes jsonv2.MarshalWrite, which writes as it goes, write what encoding/json would return as a whole.
var AsEncodingJSON = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv2.WithMarshalers(
	jsonv2.MarshalToFunc(func(e *jsontext.Encoder, number json.Number) error {
		return e.WriteValue(jsontext.Value(number))
	}),
))
