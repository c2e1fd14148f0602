package hooks

import (
	"net/url"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

const (
	formType = "application/x-www-form-urlencoded"
	// payloadField has the JSON of a form of GitHub, or of a button or dialog of Slack.
	payloadField = "payload"
)

// ofForm returns the JSON that a form stands for: that of its field payload if it has no other field, and otherwise an
// object with the fields, as of a command of Slack. A field that occurs several times becomes a list.
func ofForm(body []byte) ([]byte, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, apierror.New(apierror.InvalidJobRequest, "the body is not a form: %s", err)
	}
	if payload := form[payloadField]; len(form) == 1 && len(payload) == 1 {
		return []byte(payload[0]), nil
	}
	fields := make(map[string]any, len(form))
	for name, values := range form {
		if fields[name] = values; len(values) == 1 {
			fields[name] = values[0]
		}
	}
	made, err := jsonv2.Marshal(fields, jsonv2.Deterministic(true))
	if err != nil {
		return nil, apierror.New(apierror.InvalidJobRequest, "the body is not a form in UTF-8")
	}
	return made, nil
}
