package jobspec

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
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
	text, err := jobevent.Encode(summary)
	if err != nil {
		return payload, strictjson.Problems{{Path: "payload", Message: err.Error()}}
	}
	room, found := MaxFilledBytes, false
	var f filler
	f.replace = func(object jsontext.Value, at string) (jsontext.Value, error) {
		is, alone := summaryIn(object)
		switch {
		case is == nil:
			return nil, nil
		case *is != summaryOf || !alone:
			f.problems.Add(strictjson.Join(at, summaryMark), `must be "summary", and alone in its object`)
		}
		if found, room = true, room-len(text); room < 0 {
			return nil, filledTooLarge()
		}
		return jsontext.Value(text), nil
	}
	filled, err := f.fill(make([]byte, 0, len(payload)), jsontext.Value(payload), "payload")
	switch tooLarge := (*OutputError)(nil); {
	case errors.As(err, &tooLarge), found && len(filled) > MaxFilledBytes:
		f.problems.Add("payload", fmt.Sprintf("has more than %d bytes with the summary of the batch", MaxFilledBytes))
	case err != nil:
		f.problems.Add("payload", "is not valid JSON")
	}
	if !found || len(f.problems) > 0 {
		return payload, f.problems
	}
	return filled, nil
}

// summaryIn returns what an object has as its summaryMark, nil if it has none, and whether it has nothing else.
func summaryIn(object jsontext.Value) (is *string, alone bool) {
	members := 0
	_ = eachMember(object, func(name string, member jsontext.Value) error { // the caller reads the object itself
		if members++; name == summaryMark {
			text, _ := jsontext.AppendUnquote(nil, member) // what is no string is no summaryOf
			is = new(string(text))
		}
		return nil
	})
	return is, members == 1
}
