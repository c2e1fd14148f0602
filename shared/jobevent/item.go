package jobevent

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Item is what functions publish and handle: one fact, as a rule about one job. It is transported as an event, or as
// one of the items of an event; publishers and handlers see no difference.
type Item struct {
	Err error // of a received item: why it cannot be read; it wraps ErrInvalid, and nothing else is set then

	typ, source string
	id          string // empty: it follows from the data, see named
	jobID       uuid.UUID
	subject     string // the subject of an event, if it is not the id of a job
	at          time.Time
	traceID     uuid.UUID
	traceParent string // empty: that of an item that was published outside of any span
	cause       string // of an item that has an event of its own
	key, queue  string
	more        map[string]string // extensions that few events have
	ends        bool              // a new status that is the end of its job

	data []byte // JSON; nil: there is none, it is still in packed, or it was not encoded yet
	read any    // a pointer to the data; nil: it was not decoded

	packed *event.Event // the event in which it was received, if that has many items
	number int          // its place in that event, from 0 on
}

// Meta has the attributes of an item.
type Meta struct {
	Function string    // the function that publishes it: source /jobweaver/<function>
	ID       string    // the same for a repeated event; empty: it follows from the data, see named
	JobID    uuid.UUID // subject; zero for an item about no job
	Key      string    // record key; empty: the job id
	TraceID  uuid.UUID // correlationid and traceparent; zero: none
	Queue    string    // run events only
}

// New returns an item with data, or without if data is nil. Data of a follower is encoded when the item is published.
func New(typ string, m Meta, data any) (Item, error) {
	it := Item{
		typ: typ, id: m.ID, source: sourcePrefix + m.Function, jobID: m.JobID, at: time.Now().UTC(),
		traceID: m.TraceID, key: m.Key, queue: m.Queue,
	}
	if _, ok := data.(named); m.ID == "" && !ok {
		return Item{}, fmt.Errorf("make %s: it has no id", typ)
	}
	switch data := data.(type) {
	case nil:
		return it, nil
	case follower:
		it.read = data
		if raw := data.ownJSON(); raw != nil && !jsontext.Value(raw).IsValid(anyNames, jsontext.AllowInvalidUTF8(true)) {
			return Item{}, fmt.Errorf("encode %s: %.40q is not JSON", typ, raw)
		}
		return it, nil
	case named:
		it.read = data
	case RawStatus:
		it.ends = jobstate.Status(data.Status.Status).Terminal()
	}
	var err error
	if it.data, err = Encode(data); err != nil {
		return Item{}, fmt.Errorf("encode %s: %w", typ, err)
	}
	return it, nil
}

const sourcePrefix = "/jobweaver/"

// Type returns the item's type. For an item that ForFunctions returned it is TypesStatus.
func (it Item) Type() string { return it.typ }

// ID returns the id, which is the same for a repeated item.
func (it Item) ID() string {
	if data, ok := it.read.(named); ok && it.id == "" {
		return data.usualID()
	}
	return it.id
}

// Source is /jobweaver/<function>.
func (it Item) Source() string { return it.source }

func (it Item) String() string { return it.typ + " " + it.ID() }

// JobID is zero for an item that is about no job.
func (it Item) JobID() uuid.UUID { return it.jobID }

// Subject returns the job's id as text; empty: the item is about no job.
func (it Item) Subject() string {
	if it.jobID == uuid.Nil {
		return it.subject
	}
	return it.jobID.String()
}

// Time returns when the item was made. For a received item of many it is when the event was made.
func (it Item) Time() time.Time { return it.at }

// TraceID is zero for an item that belongs to no trace.
func (it Item) TraceID() uuid.UUID { return it.traceID }

// TraceParent returns the W3C form of the span from which the item came; empty: it belongs to no trace.
func (it Item) TraceParent() string {
	if it.traceParent == "" && it.traceID != uuid.Nil {
		return TraceParent(it.traceID, it.ID(), it.jobID == uuid.Nil || Sampled(it.jobID))
	}
	return it.traceParent
}

// Cause returns the id of the handled item from which this one follows; empty: there was none.
func (it Item) Cause() string { return it.cause }

// Key returns the record key; empty: there is none.
func (it Item) Key() string {
	if it.key == "" && it.jobID != uuid.Nil {
		return it.jobID.String()
	}
	return it.key
}

// Queue returns the queue of a run order.
func (it Item) Queue() string { return it.queue }

// Data returns the item's JSON; nil: it has none.
func (it Item) Data() []byte {
	if it.packed != nil && it.data == nil {
		return it.asReceived()
	}
	return it.encoded()
}

// asReceived returns the JSON that stands for the item in the event in which it was received; for an array, what it
// would be as the first item.
func (it *Item) asReceived() []byte {
	if it.Err != nil && it.data != nil {
		return it.data
	}
	raw := rawItem(*it.packed, it.number)
	if raw.Kind() == '[' && it.Err == nil {
		return it.appendTo(nil)
	}
	return raw
}

// encoded returns the JSON of the data; nil: there is none.
func (it *Item) encoded() []byte {
	if it.data != nil || it.read == nil {
		return it.data
	}
	data, err := Encode(it.read)
	if err != nil {
		panic(fmt.Sprintf("encode %s: %v", it, err)) // cannot happen with what New has checked or Unpack has read
	}
	return data
}

// Size returns about how many bytes the item has.
func (it Item) Size() int {
	if data, ok := it.read.(follower); ok && it.data == nil {
		return data.size()
	}
	return len(it.data)
}

// Ends reports whether a new item is the status of a job that has ended.
func (it Item) Ends() bool { return it.ends }

// SetTime sets the time at which the item was made.
func (it *Item) SetTime(at time.Time) { it.at = at.UTC() }

// SetCause sets the id of the item whose handling made this one.
func (it *Item) SetCause(id string) { it.cause = id }

// SetTraceParent sets the span from which the item came.
func (it *Item) SetTraceParent(parent string) { it.traceParent = parent }

// setMore is for a new item: its copies share the map.
func (it *Item) setMore(name, text string) {
	if it.more == nil {
		it.more = make(map[string]string, 5) // as many as a deleted event has
	}
	it.more[name] = text
}

// jsonType is the content type to which all events with data point.
var jsonType = event.ApplicationJSON

// Event returns the item as an event of its own. The caller may change its extensions.
func (it Item) Event() event.Event {
	ctx := &event.EventContextV1{
		ID: it.ID(), Type: it.typ, Time: &types.Timestamp{Time: it.at}, Extensions: make(map[string]any, 6),
	}
	ctx.Source.Path = it.source
	if subject := it.Subject(); subject != "" {
		ctx.Subject = &subject
	}
	for name, text := range it.more {
		ctx.Extensions[name] = text
	}
	set := func(name, text string) {
		if text != "" {
			ctx.Extensions[name] = text
		}
	}
	set(ExtPartitionKey, it.Key())
	set(ExtTraceParent, it.TraceParent())
	set(ExtCausationID, it.cause)
	set(ExtQueue, it.queue)
	if it.traceID != uuid.Nil {
		set(ExtCorrelationID, it.traceID.String())
	}
	e := event.Event{Context: ctx, DataEncoded: it.Data()}
	if e.DataEncoded != nil {
		ctx.DataContentType = &jsonType
	}
	return e
}

// ItemOf reads an event of one item.
func ItemOf(e event.Event) Item {
	it := Item{
		typ: e.Type(), id: e.ID(), source: e.Source(), at: e.Time(), traceID: TraceIDOf(e), data: e.DataEncoded,
	}
	if id, err := uuid.Parse(e.Subject()); err == nil {
		it.jobID = id
	}
	if it.jobID == uuid.Nil {
		it.subject = e.Subject()
	}
	for name, value := range extensionsOf(e) {
		text, _ := value.(string)
		switch name {
		case ExtPartitionKey:
			it.key = text
		case ExtTraceParent:
			it.traceParent = text
		case ExtCausationID:
			it.cause = text
		case ExtQueue:
			it.queue = text
		case ExtCorrelationID, ExtSignature: // the first is in traceID; the item's later event gets its own signature
		default:
			it.setMore(name, text)
		}
	}
	return it
}

// Shared reports whether an item was received in an event that may have several.
func (it Item) Shared() bool { return it.packed != nil }

// Number is the place of a received item in its event, from 0 on.
func (it Item) Number() int { return it.number }

// Alone returns an event with only this item, without a signature. For a received item it is the received event without
// the others.
func (it Item) Alone() event.Event {
	if it.packed == nil {
		events, _ := Pack([]Item{it})
		return events[0]
	}
	e := it.packed.Clone()
	e.SetID(it.packed.ID() + "/" + strconv.Itoa(it.number))
	e.SetExtension(ExtSignature, nil)
	e.DataEncoded = slices.Concat([]byte(`{"items":[`), it.asReceived(), []byte("]}")) // whatever is wrong with it
	return e
}
