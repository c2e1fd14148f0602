package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"
)

// JSON returns a value that a handler has made as JSON, with < as it is: as \u003c it would take six bytes. A value
// that JSON cannot hold, or that encoding/json or the gateway would change, is a *Failure: another attempt would make
// it again.
func JSON(what string, value any) (data json.RawMessage, err error) {
	defer func() {
		if oh := recover(); oh != nil { // in a MarshalJSON
			err = fmt.Errorf("panic: %v", oh)
		}
		if err != nil {
			data, err = nil, &Failure{NotJSON, what + " has no JSON form: " + err.Error()}
		}
	}()
	if data, err = encode(value); err != nil {
		return nil, err
	}
	if hasEscape(data, `\u0000`) {
		return nil, errors.New("it contains the character \\u0000")
	}
	// encoding/json writes this in place of bytes that are not UTF-8. A json.RawMessage may also contain it.
	if hasEscape(data, `\ufffd`) && !isUTF8(reflect.ValueOf(value)) {
		return nil, errors.New("it contains text that is not UTF-8")
	}
	return data, nil
}

// hasEscape reports whether JSON has an escape, which must be lower case, as encoding/json writes it.
func hasEscape(data []byte, escape string) bool {
	for {
		i := bytes.Index(data, []byte(escape))
		if i < 0 {
			return false
		}
		before := data[:i]
		if backslashes := len(before) - len(bytes.TrimRight(before, `\`)); backslashes%2 == 0 {
			return true
		}
		data = data[i+len(escape):]
	}
}

// isUTF8 reports whether all texts of a value are UTF-8. The value has been encoded, so it has no cycles.
func isUTF8(v reflect.Value) bool {
	switch v.Kind() { //nolint:exhaustive // the others hold no text
	case reflect.String:
		return utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || isUTF8(v.Elem())
	case reflect.Struct:
		for of, field := range v.Fields() {
			encoded := (of.IsExported() || of.Anonymous) && of.Tag.Get("json") != "-" // the others may have cycles
			if encoded && !isUTF8(field) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return true // base64, or a json.RawMessage
		}
		for i := range v.Len() {
			if !isUTF8(v.Index(i)) {
				return false
			}
		}
	case reflect.Map:
		for at := v.MapRange(); at.Next(); {
			if !isUTF8(at.Key()) || !isUTF8(at.Value()) {
				return false
			}
		}
	}
	return true
}

func encode(value any) (json.RawMessage, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
