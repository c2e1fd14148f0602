package jobevent

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
	jsonv2 "github.com/go-json-experiment/json" // decodes three times as fast
	"github.com/google/uuid"
)

// Extensions that every event carries where they apply.
const (
	ExtPartitionKey  = "partitionkey"
	ExtCorrelationID = "correlationid"
	ExtCausationID   = "causationid"
	ExtTraceParent   = "traceparent"
	ExtQueue         = "queue" // of a run event: names its topic
	ExtSignature     = "jwsig" // of the type, id, subject and data, by a key of EVENT_KEYS_FILE
)

// Meta is what an event says of itself beside its data.
type Meta struct {
	Function string    // who says it: source /jobweaver/<function>
	ID       string    // the same for a repeated event
	JobID    uuid.UUID // subject; zero for events that are about no job
	Key      string    // record key; empty: the job id
	TraceID  uuid.UUID // correlationid and traceparent; zero: none
	Queue    string    // run events only
	Cause    string    // causationid; empty: the host of a function sets it where an event was handled
}

// jsonType is what every event's content type points to.
var jsonType = event.ApplicationJSON

// New builds an event with JSON data, or without any when data is nil. It sets the fields of the SDK's
// context itself: the setters check, copy and parse what is right by construction.
func New(typ string, m Meta, data any) (event.Event, error) {
	var body []byte
	var contentType *string
	if data != nil {
		var err error
		if body, err = encode(data); err != nil {
			return event.Event{}, fmt.Errorf("encode %s: %w", typ, err)
		}
		contentType = &jsonType
	}
	// One piece of memory for all that an event has.
	whole := &struct {
		ctx     event.EventContextV1
		at      types.Timestamp
		subject string
	}{}
	ctx := &whole.ctx
	whole.at.Time = time.Now().UTC()
	ctx.ID, ctx.Type, ctx.Time, ctx.DataContentType = m.ID, typ, &whole.at, contentType
	ctx.Source.Path = sourceOf(m.Function)
	ctx.Extensions = make(map[string]any, 5) // as a rule causationid comes later
	key := m.Key
	if m.JobID != uuid.Nil {
		whole.subject = m.JobID.String()
		ctx.Subject = &whole.subject
		if key == "" {
			key = whole.subject
		}
	}
	if key != "" {
		ctx.Extensions[ExtPartitionKey] = key
	}
	if m.TraceID != uuid.Nil {
		ctx.Extensions[ExtCorrelationID] = m.TraceID.String()
		ctx.Extensions[ExtTraceParent] = TraceParent(m.TraceID, m.ID, m.JobID == uuid.Nil || Sampled(m.JobID))
	}
	if m.Cause != "" {
		ctx.Extensions[ExtCausationID] = m.Cause
	}
	if m.Queue != "" {
		ctx.Extensions[ExtQueue] = m.Queue
	}
	return event.Event{Context: ctx, DataEncoded: body}, nil
}

// sourceOf spares a new text for each event.
func sourceOf(function string) string {
	if known, ok := sources.Load(function); ok {
		return known.(string)
	}
	known, _ := sources.LoadOrStore(function, "/jobweaver/"+function)
	return known.(string)
}

var sources sync.Map // function → source

// appender is data that writes its own JSON: the events of a plain job.
type appender interface {
	appendJSON(b []byte) []byte
}

// scratch holds buffers in which data is encoded before its size is known.
var scratch = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const scratchMost = 64 << 10 // a larger buffer is not kept

func encode(data any) ([]byte, error) {
	buffer := scratch.Get().(*bytes.Buffer)
	buffer.Reset()
	defer func() {
		if buffer.Cap() <= scratchMost {
			scratch.Put(buffer)
		}
	}()
	if own, ok := data.(appender); ok {
		buffer.Write(own.appendJSON(buffer.AvailableBuffer()))
		return bytes.Clone(buffer.Bytes()), nil
	}
	// Not json.Marshal: it makes six bytes of each < in a payload, and then a good job fits no record.
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(data); err != nil {
		return nil, err
	}
	return bytes.Clone(bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))), nil
}

// quick is data that reads what its own appendJSON writes. It says no to anything else.
type quick interface {
	readJSON(b []byte) bool
}

// Decode reads an event's JSON data. Its errors wrap ErrInvalid.
func Decode[T any](e event.Event) (T, error) {
	var data T
	if own, ok := any(&data).(quick); ok && own.readJSON(e.DataEncoded) {
		return data, nil
	}
	var other T // without what was read before the no
	if err := jsonv2.Unmarshal(e.Data(), &other, anyNames); err != nil {
		return other, fmt.Errorf("decode %s %s: %w: %w", e.Type(), e.ID(), err, ErrInvalid)
	}
	return other, nil
}

// DecodeAs is Decode for a handler that takes one type of event only.
func DecodeAs[T any](e event.Event, typ string) (T, error) {
	if e.Type() != typ {
		var none T
		return none, fmt.Errorf("take event of type %q as %s: %w", e.Type(), typ, ErrInvalid)
	}
	return Decode[T](e)
}

// Extension is the text of an event's extension; empty when it has none of that name.
func Extension(e event.Event, name string) string {
	var value any
	if ctx, ok := e.Context.(*event.EventContextV1); ok {
		value = ctx.Extensions[name] // Event.Extensions copies the map
	} else {
		value = e.Extensions()[name]
	}
	text, _ := value.(string)
	return text
}

// TraceIDOf is the trace an event belongs to; zero when it names none.
func TraceIDOf(e event.Event) uuid.UUID {
	id, err := uuid.Parse(Extension(e, ExtCorrelationID))
	if err != nil {
		return uuid.Nil
	}
	return id
}

// SpanID is the id of the span that stands behind a name: what has a name has the same span whoever tells of it. An
// attempt's is that of its token. An event that was said outside of any span names its own.
func SpanID(name string) [8]byte {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // hash.Hash never fails
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], h.Sum64()|1) // one of zeros is invalid
	return id
}

// JobSpanID is the id of the span in which a job was told of for the first time. All that is later done about the job,
// and of which nobody knows where it came from, stands below it.
func JobSpanID(jobID uuid.UUID) [8]byte { return [8]byte(jobID[8:]) } // random, and of a UUID never all zeros

// TraceParent is the W3C form of a trace id, with the span id of a name. sampled says that the trace is kept.
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
