package jobspec

import (
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical writes a decoded request so that the same meaning is the same bytes: whatever the order of members, the
// white space, the way a character or a fraction is written, the order of tags and of after, or whether a default is
// spelled out. What is as by default is left out, so that a request hashes to the same before and after a new member is
// added. It fails only for a payload that Decode has not seen.
func Canonical(req Request) ([]byte, error) {
	var err error
	if req.Payload, err = canonicalPayload(req); err != nil {
		return nil, fmt.Errorf("write canonical payload: %w", err)
	}
	b := []byte{'{'}
	for i := range members {
		value := members[i].canonicalOf(&req)
		if value == nil {
			continue
		}
		written, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("write canonical request: %w", err)
		}
		b = append(appendName(b, members[i].name, 1), written...)
	}
	return append(b, '}'), nil
}

func canonicalPayload(req Request) ([]byte, error) {
	if req.JobType == Simulation && req.Inputs == nil {
		steps, err := ParseSimulation(req.Payload)
		if err != nil {
			return nil, err
		}
		return json.Marshal(canonicalSteps(steps))
	}
	// Integers stay as they are written: as doubles, neighbours above 2⁵³ would be the same.
	return jsontext.AppendFormat(nil, []byte(req.Payload), jsontext.ReorderRawObjects(true),
		jsontext.CanonicalizeRawFloats(true))
}

// canonicalStep is a step with what is as by default left out.
type canonicalStep struct {
	Type         string `json:"type"`
	Message      string `json:"message,omitempty"`
	DurationMs   int64  `json:"durationMs,omitempty"`
	Iterations   int64  `json:"iterations,omitempty"`
	URL          string `json:"url,omitempty"`
	Method       string `json:"method,omitempty"`
	LatencyMs    int64  `json:"latencyMs,omitempty"`
	ErrorCode    string `json:"errorCode,omitempty"`
	Final        bool   `json:"final,omitempty"` // not retryable
	FailAttempts *int   `json:"failAttempts,omitempty"`
}

func canonicalSteps(steps []Step) []canonicalStep {
	list := make([]canonicalStep, len(steps))
	for i, step := range steps {
		c := &list[i]
		switch s := step.(type) {
		case Sleep:
			*c = canonicalStep{Type: "SLEEP", DurationMs: s.Duration.Milliseconds()}
		case Log:
			*c = canonicalStep{Type: "LOG", Message: s.Message}
		case Compute:
			*c = canonicalStep{Type: "COMPUTE", Iterations: s.Iterations}
		case HTTPCall:
			*c = canonicalStep{Type: "HTTP_CALL", URL: s.URL, LatencyMs: s.Latency.Milliseconds()}
			c.Method = emptyIf(s.Method, defaultMethod)
		case Fail:
			*c = canonicalStep{Type: "FAIL", Message: emptyIf(s.Message, DefaultFailMessage)}
			c.ErrorCode, c.Final = emptyIf(s.ErrorCode, DefaultFailCode), !s.Retryable
			if s.Attempts != AllAttempts {
				c.FailAttempts = &s.Attempts
			}
		}
	}
	return list
}

func emptyIf(s, byDefault string) string {
	if s == byDefault {
		return ""
	}
	return s
}
