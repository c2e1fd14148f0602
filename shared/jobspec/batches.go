package jobspec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/strictjson"
)

func parseBatchID(s string) (id uuid.UUID, wrong string) {
	id, err := uuid.Parse(s)
	if err != nil || id == uuid.Nil || id.String() != s { // uuid.Parse takes other forms too
		return uuid.Nil, "must be the id of a batch, as 01936f3e-5f3e-7cc0-8000-0123456789ab"
	}
	return id, ""
}

// summaryMark and summaryOf are the object that stands for the summary of a batch, {"$batch": "summary"}.
const (
	summaryMark = "$batch"
	summaryOf   = "summary"
)

// FillInSummary puts the summary of a batch in each place of a payload where an object {"$batch": "summary"} stands. A
// payload without one is returned as it is.
func FillInSummary(payload json.RawMessage, summary any) (json.RawMessage, strictjson.Problems) {
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return payload, strictjson.Problems{{Path: "payload", Message: "is not valid JSON"}}
	}
	f := filling{summary: summary}
	value = f.in(value, "payload")
	if !f.filled || len(f.problems) > 0 {
		return payload, f.problems
	}
	filled, err := MarshalUnescaped(value)
	if err != nil {
		return payload, strictjson.Problems{{Path: "payload", Message: err.Error()}}
	}
	return filled, nil
}

// MarshalUnescaped writes JSON of a job with < as it is: with \u003c a job that contains HTML could become larger than
// is allowed.
func MarshalUnescaped(value any) (json.RawMessage, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

type filling struct {
	summary  any
	filled   bool
	problems strictjson.Problems
}

func (f *filling) in(value any, path string) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = f.in(v[i], fmt.Sprintf("%s[%d]", path, i))
		}
	case map[string]any:
		if mark, ok := v[summaryMark]; ok {
			if f.filled = true; mark != summaryOf || len(v) > 1 {
				f.problems.Add(strictjson.Join(path, summaryMark), `must be "summary", and alone in its object`)
			}
			return f.summary
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			v[name] = f.in(v[name], strictjson.Join(path, name))
		}
	}
	return value
}
