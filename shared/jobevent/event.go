package jobevent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	jsonv2 "github.com/go-json-experiment/json" // decodes three times as fast
	"github.com/google/uuid"
)

// Extensions that every event carries where they apply.
const (
	ExtPartitionKey  = "partitionkey"
	ExtCorrelationID = "correlationid"
	ExtCausationID   = "causationid"
	ExtTraceParent   = "traceparent"
)

// Meta is what an event says of itself beside its data.
type Meta struct {
	Function string    // who says it: source /jobweaver/<function>
	ID       string    // the same for a repeated event
	JobID    uuid.UUID // subject; zero for events that are about no job
	Key      string    // record key; empty: the job id
	TraceID  uuid.UUID // correlationid and traceparent; zero: none
	Queue    string    // run events only
}

// New builds an event with JSON data.
func New(typ string, m Meta, data any) (event.Event, error) {
	// Not json.Marshal: it makes six bytes of each < in a payload, and then a good job fits no record.
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(data); err != nil {
		return event.Event{}, fmt.Errorf("encode %s: %w", typ, err)
	}
	e := event.New()
	e.SetID(m.ID)
	e.SetType(typ)
	e.SetSource("/jobweaver/" + m.Function)
	e.SetTime(time.Now().UTC())
	key := m.Key
	if m.JobID != uuid.Nil {
		e.SetSubject(m.JobID.String())
		if key == "" {
			key = m.JobID.String()
		}
	}
	if key != "" {
		e.SetExtension(ExtPartitionKey, key)
	}
	if m.TraceID != uuid.Nil {
		e.SetExtension(ExtCorrelationID, m.TraceID.String())
		e.SetExtension(ExtTraceParent, TraceParent(m.TraceID, m.ID))
	}
	if m.Queue != "" {
		e.SetExtension(queueExtension, m.Queue)
	}
	e.SetDataContentType(event.ApplicationJSON)
	e.DataEncoded = bytes.TrimSuffix(body.Bytes(), []byte("\n"))
	return e, nil
}

// Decode reads an event's JSON data. Its errors wrap ErrInvalid.
func Decode[T any](e event.Event) (T, error) {
	var data T
	if err := jsonv2.Unmarshal(e.Data(), &data); err != nil {
		return data, fmt.Errorf("decode %s %s: %w: %w", e.Type(), e.ID(), err, ErrInvalid)
	}
	return data, nil
}

// DecodeAs is Decode for a handler that takes one type of event only.
func DecodeAs[T any](e event.Event, typ string) (T, error) {
	if e.Type() != typ {
		var none T
		return none, fmt.Errorf("take event of type %q as %s: %w", e.Type(), typ, ErrInvalid)
	}
	return Decode[T](e)
}

// TraceIDOf is the trace an event belongs to; zero when it names none.
func TraceIDOf(e event.Event) uuid.UUID {
	text, _ := e.Extensions()[ExtCorrelationID].(string)
	id, err := uuid.Parse(text)
	if err != nil {
		return uuid.Nil
	}
	return id
}

// TraceParent is the W3C form of a trace id. The span id is derived from the event's id, so that a
// repeated event is the same span.
func TraceParent(traceID uuid.UUID, spanOf string) string {
	h := fnv.New64a()
	h.Write([]byte(spanOf)) // hash.Hash never fails
	span := h.Sum64() | 1   // a span id of zeros is invalid
	hex := strconv.FormatUint(span, 16)
	return "00-" + strings.ReplaceAll(traceID.String(), "-", "") + "-" + strings.Repeat("0", 16-len(hex)) + hex + "-01"
}
