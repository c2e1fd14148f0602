package jobevent

import (
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
)

// Extensions that every event carries where they apply.
const (
	ExtPartitionKey  = "partitionkey"
	ExtCorrelationID = "correlationid"
	ExtCausationID   = "causationid"
	ExtTraceParent   = "traceparent"
	ExtQueue         = "queue" // of a run event: determines its topic
	ExtSignature     = "jwsig" // the signature of the type, id, subject and data, by a key of EVENT_KEYS_FILE
)

// Extension returns the text of an event's extension; empty if the event has none of this name.
func Extension(e event.Event, name string) string {
	text, _ := extensionsOf(e)[name].(string)
	return text
}

// extensionsOf returns an event's extensions without the copy that Extensions makes.
func extensionsOf(e event.Event) map[string]any {
	if ctx, ok := e.Context.(*event.EventContextV1); ok {
		return ctx.Extensions
	}
	return e.Extensions()
}

// TraceIDOf returns the id of the event's trace; zero if it names none.
func TraceIDOf(e event.Event) uuid.UUID {
	id, err := uuid.Parse(Extension(e, ExtCorrelationID))
	if err != nil {
		return uuid.Nil
	}
	return id
}

// SpanID returns the id of the span with a name. The same name has the same span in every event. The name of an
// attempt's span is the attempt's token. An event that was published outside of any span refers to a span of its own.
func SpanID(name string) [8]byte {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // hash.Hash never fails
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], h.Sum64()|1) // an id of zeros is invalid
	return id
}

// JobSpanID returns the id of the span of the first event about a job. It is the parent of later spans about the job
// whose origin is unknown.
func JobSpanID(jobID uuid.UUID) [8]byte { return [8]byte(jobID[8:]) } // random, and in a UUID never all zero

// TraceParent returns the W3C form of a trace id, with the span id of a name. sampled means that the trace is kept.
func TraceParent(traceID uuid.UUID, spanOf string, sampled bool) string {
	span := SpanID(spanOf)
	text := make([]byte, 0, len("00-")+32+len("-")+16+len("-01"))
	text = append(text, "00-"...)
	text = hex.AppendEncode(text, traceID[:])
	text = hex.AppendEncode(append(text, '-'), span[:])
	if !sampled {
		return string(append(text, "-00"...))
	}
	return string(append(text, "-01"...))
}
