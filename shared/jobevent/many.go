package jobevent

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// The limits of an event that Pack makes. A single item that is larger than MaxItemBytes has an event for itself.
const (
	MaxItems     = 500 // also the most that Unpack accepts
	MaxRunItems  = 64  // attempts in one run event, whose record is done only when all of them are
	MaxRunsAlone = 16  // up to this many attempts for one partition have an event each
	MaxItemBytes = 512 << 10
)

const maxEventID = 512 // bytes

// ForFunctions returns a status or a deletion as projection receives it: with others in its event, as an item of
// TypeStatus or TypeDeleted. What anyone may receive is an event of its own.
// Why both: docs/decisions/events.md#projection-gets-statuses-together
func (it Item) ForFunctions() Item {
	it.typ = TypesStatus
	return it
}

// IsPacked reports whether an event may have many items.
func IsPacked(e event.Event) bool { return unpackers[e.Type()] != nil }

// itemMeta has the fields of an item beside its data. No data has fields with these names, except for the kind of a
// Failed.
type itemMeta struct {
	EventID     string    `json:"eventId"` // absent: it follows from the data, see named
	TraceID     uuid.UUID `json:"traceId"`
	TraceParent string    `json:"traceparent"` // absent: the item was published outside of any span
	Kind        Kind      `json:"kind"`        // of the outcome of an attempt: completed, waiting, or that of its Failed
}

// Pack puts items into as few events as the limits allow, in the order of the first item of each. An item that others
// than functions receive has an event of its own. of[i] lists which items are in events[i].
//
// Up to MaxRunsAlone attempts to run for one partition get an event each. A scaler sees by the uncommitted records of
// run-job how much work there is. Long attempts go out a few at a time, as slots become free: if they were in one
// record, a worker full of them would look idle. The many attempts of a burst are short.
// Why an event carries many jobs: docs/decisions/events.md#an-event-between-functions-carries-many-jobs
func Pack(items []Item) (events []event.Event, of [][]int) {
	runs := map[packing]int{}
	for i := range items {
		if items[i].typ == TypeRun {
			runs[items[i].packing()]++
		}
	}
	open := map[packing]*envelope{}
	var all []*envelope
	var text []byte
	for i := range items {
		to := items[i].packing()
		if to.typ == "" {
			all = append(all, &envelope{of: []int{i}})
			continue
		}
		p, alone := open[to], 0 < runs[to] && runs[to] <= MaxRunsAlone
		if p != nil && !alone && p.shared <= maxShared && items[i].follows(&items[p.of[len(p.of)-1]]) {
			if text = items[i].appendFollowing(text[:0]); p.hasRoom(len(text)) {
				p.add(i, text)
				continue
			}
		}
		text = items[i].appendTo(text[:0])
		if p == nil || alone || !p.hasRoom(len(text)) {
			p = &envelope{packing: to}
			open[to], all = p, append(all, p)
		}
		p.add(i, text)
		if data, ok := items[i].read.(follower); ok {
			p.shared = len(text) - len(data.ownJSON())
		}
	}
	for _, p := range all {
		if p.typ == "" {
			events, of = append(events, items[p.of[0]].Event()), append(of, p.of)
			continue
		}
		events, of = append(events, p.event(items)), append(of, p.of)
	}
	return events, of
}

// packing has the common attributes of the items of one event. Its type is empty for an item that has an event of its
// own.
type packing struct{ typ, source, queue, key string }

func (it *Item) packing() packing {
	to := packing{typ: packedAs[it.typ], source: it.source, queue: it.queue}
	if it.typ == TypeRun {
		to.key = it.Key()
	}
	return to
}

// follows reports whether the item differs from another one only in what a follower has of its own.
func (it *Item) follows(before *Item) bool {
	data, ok := it.read.(follower)
	return ok && it.id == "" && before.id == "" && it.traceParent == "" && before.traceParent == "" &&
		data.follows(before.read)
}

// appendFollowing appends the item as it stands in an event behind one that it follows.
func (it *Item) appendFollowing(b []byte) []byte {
	b = appendUUID(append(b, `["`...), it.jobID)
	b = appendUUID(append(b, `","`...), it.traceID)
	return append(it.read.(follower).appendOwn(append(b, '"')), ']')
}

// appendTo appends the item as it stands in an event.
func (it *Item) appendTo(b []byte) []byte {
	b = append(b, '{')
	b = appendField(b, `"eventId":`, it.id)
	if it.traceID != uuid.Nil {
		b = append(appendUUID(append(b, `"traceId":"`...), it.traceID), `",`...)
	}
	b = appendField(b, `"traceparent":`, it.traceParent)
	switch it.typ {
	case TypesStatus:
		b = appendField(b, `"jobId":`, it.Subject())
		if it.data == nil {
			return append(appendDeleted(b, it.more), '}')
		}
		return append(append(append(b, `"status":`...), it.data...), '}')
	case TypeCompleted:
		b = appendField(b, `"kind":`, string(jobstate.KindCompleted))
	case TypeWaiting:
		b = appendField(b, `"kind":`, string(jobstate.KindWaiting))
	}
	data := it.encoded()
	if string(data) == "{}" {
		b = b[:len(b)-len(",")]
	}
	return append(b, data[len("{"):]...)
}

func appendField(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	b, _ = jsontext.AppendQuote(append(b, name...), text) // invalid UTF-8 becomes U+FFFD
	return append(b, ',')
}

type envelope struct {
	packing
	of     []int
	data   []byte // without its end
	shared int    // bytes of the last object, beside its own JSON
}

func (p *envelope) hasRoom(bytes int) bool {
	most := MaxItems
	if p.typ == TypesRun {
		most = MaxRunItems
	}
	return len(p.of) < most && len(p.data)+bytes <= MaxItemBytes
}

func (p *envelope) add(i int, item []byte) {
	if p.data == nil {
		p.data = append(make([]byte, 0, len(item)+32), `{"items":[`...)
	} else {
		p.data = append(p.data, ',')
	}
	p.of, p.data = append(p.of, i), append(p.data, item...)
}

// event returns the event of the items. Its id consists of the first item's id and a hash of all ids, so the same items
// give the same event.
func (p *envelope) event(items []Item) event.Event {
	ids := sha256.New()
	var line []byte
	for _, i := range p.of {
		line = append(append(line[:0], items[i].ID()...), '\n')
		ids.Write(line) // hash.Hash never fails
	}
	first := items[p.of[0]]
	ctx := &event.EventContextV1{
		ID: first.ID() + "+" + hex.EncodeToString(ids.Sum(nil)[:8]), Type: p.typ, DataContentType: &jsonType,
		Time: &types.Timestamp{Time: time.Now().UTC()}, Extensions: make(map[string]any, 3), // jwsig comes later
	}
	ctx.Source.Path = p.source
	if key := first.Key(); key != "" {
		ctx.Extensions[ExtPartitionKey] = key
	}
	if p.queue != "" {
		ctx.Extensions[ExtQueue] = p.queue
	}
	return event.Event{Context: ctx, DataEncoded: append(p.data, "]}"...)}
}

// Unpack returns the items of an event; an event that is not of many items is one. The error wraps ErrInvalid and means
// that no item can be read. A single item that cannot be read has an error of its own.
func Unpack(e event.Event) ([]Item, error) {
	if packed := packedAs[e.Type()]; packed != "" && packed != e.Type() {
		return nil, fmt.Errorf("take %s %s outside of %s: %w", e.Type(), e.ID(), packed, ErrInvalid)
	}
	unpack := unpackers[e.Type()]
	if unpack == nil {
		return []Item{ItemOf(e)}, nil
	}
	items, err := unpack(e)
	if err != nil {
		return nil, fmt.Errorf("decode %s %s: %w: %w", e.Type(), e.ID(), err, ErrInvalid)
	}
	at, source, queue := e.Time(), e.Source(), Extension(e, ExtQueue)
	for i := range items {
		it := &items[i]
		it.packed, it.number = &e, i
		if it.Err != nil {
			it.Err = fmt.Errorf("decode item %d of %s %s: %w: %w", i, e.Type(), e.ID(), it.Err, ErrInvalid)
			continue
		}
		it.at, it.source, it.queue = at, source, queue
	}
	return items, nil
}

// unpackers read the data of events of many items, by type.
var unpackers = map[string]func(event.Event) ([]Item, error){
	TypesCreated: unpacker(func(it *Item, d *Created, _ Kind) { it.jobID, it.read, d.TraceID = d.JobID, d, it.traceID }),
	TypesRun:     unpacker(func(it *Item, d *Run, _ Kind) { it.jobID, it.read = d.JobID, d }),
	TypesEnded:   unpacker(func(it *Item, d *ended, kind Kind) { it.jobID, it.read = d.JobID, d.as(kind) }),
	TypesCommand: unpacker(func(it *Item, d *Command, _ Kind) { it.jobID, it.read = d.JobID, d }),
	TypesAttemptCancels: unpacker(
		func(it *Item, d *AttemptCancel, _ Kind) { it.jobID, it.read = d.JobID, d }),
	TypesAttemptLogs: unpacker(func(it *Item, d *AttemptLog, _ Kind) { it.jobID, it.read = d.JobID, d }),
	TypesStatus:      unpacker(func(it *Item, d *nested, _ Kind) { d.into(it) }),
}

// nested is the data of an item with a status or a deletion. The JSON of a status is kept unchanged, and decoded like
// that of a single event. A deletion has the extensions that its event would have.
type nested struct {
	JobID   uuid.UUID         `json:"jobId"`
	Status  jsontext.Value    `json:"status"`
	Deleted map[string]string `json:"deleted"`
}

func (d *nested) into(it *Item) {
	it.jobID, it.data, it.more = d.JobID, d.Status, d.Deleted
	switch {
	case d.Deleted != nil && d.Status == nil:
		it.typ = TypeDeleted
	case d.Status.Kind() != '{' || d.Deleted != nil:
		it.data, it.Err = nil, errNoStatus
	}
}

// unpacker returns a function that reads items whose data is a T. set sets the job of an item, and the value that
// Decode returns. As a rule the whole event is decoded at once. If one of its items is wrong, each item is decoded by
// itself.
func unpacker[T any](set func(it *Item, d *T, kind Kind)) func(event.Event) ([]Item, error) {
	return func(e event.Event) ([]Item, error) {
		var data struct {
			Items itemsOf[T] `json:"items"`
		}
		if err := jsonv2.Unmarshal(e.DataEncoded, &data, anyNames); err != nil {
			return unpackApart(e, set)
		}
		if len(data.Items) == 0 {
			return nil, errNoItems
		}
		items := make([]Item, len(data.Items))
		for i := range data.Items {
			items[i] = data.Items[i].item(e.Type(), set)
		}
		return items, nil
	}
}

// unpackApart reads each item by itself. An item with wrong data has no error here as long as its id and job can be
// read: then its handler fails to decode the data, and knows the job.
func unpackApart[T any](e event.Event, set func(*Item, *T, Kind)) ([]Item, error) {
	raws, err := rawItems(e)
	if err != nil {
		return nil, err
	}
	items := make([]Item, len(raws))
	var before *itemAs[T] // nil: it cannot be read
	for i, raw := range raws {
		read := new(itemAs[T])
		err := read.readFrom(jsontext.NewDecoder(bytes.NewReader(raw), anyNames), before)
		if err == nil {
			items[i], before = read.item(e.Type(), set), read
			continue
		}
		if raw.Kind() != '[' {
			before = nil
		}
		var named struct {
			itemMeta
			JobID string `json:"jobId"`
		}
		if jsonv2.Unmarshal(raw, &named, anyNames) != nil {
			items[i] = Item{Err: err, data: raw}
			continue
		}
		items[i] = named.itemMeta.item(e.Type())
		if id, err := uuid.Parse(named.JobID); err == nil {
			items[i].jobID, items[i].id = id, cmp.Or(named.EventID, id.String())
		} else if named.EventID == "" {
			items[i].Err = err
		}
		if items[i].checkID(); items[i].Err != nil {
			items[i].data = raw
		}
	}
	return items, nil
}

// itemAs is an item as the decoder reads it, with its attributes and its data side by side.
type itemAs[T any] struct {
	itemMeta
	Data T `json:",embed"`

	shared int // bytes of the object, beside its own JSON
}

// readFrom reads an item. An array follows the item before it, which is nil if there is none.
func (read *itemAs[T]) readFrom(dec *jsontext.Decoder, before *itemAs[T]) (err error) {
	data, ok := any(&read.Data).(followed)
	if dec.PeekKind() != '[' {
		begin := dec.InputOffset()
		if err = jsonv2.UnmarshalDecode(dec, read); ok {
			read.shared = int(dec.InputOffset()-begin) - len(data.ownJSON())
		}
		return err
	}
	if !ok || before == nil || before.shared > maxShared {
		return errFollowsNone
	}
	*read = *before
	read.EventID, read.TraceParent = "", ""
	if _, err = dec.ReadToken(); err != nil {
		return err
	}
	job, err := readUUID(dec)
	if err != nil {
		return err
	}
	if read.TraceID, err = readUUID(dec); err != nil {
		return err
	}
	if err = data.readOwn(job, dec); err != nil {
		return err
	}
	if end, err := dec.ReadToken(); err != nil || end.Kind() != ']' {
		return errors.Join(errFollowsNone, err)
	}
	return nil
}

// item returns an item of an event of this type.
func (read *itemAs[T]) item(packed string, set func(*Item, *T, Kind)) Item {
	it := read.itemMeta.item(packed)
	set(&it, &read.Data, read.Kind)
	it.checkID()
	return it
}

type itemsOf[T any] []itemAs[T]

// UnmarshalJSONFrom returns an error after MaxItems items: otherwise a small event could take much memory.
func (l *itemsOf[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if begin, err := dec.ReadToken(); err != nil || begin.Kind() != '[' {
		return errors.Join(errNoItems, err)
	}
	for *l = nil; dec.PeekKind() != ']'; {
		n := len(*l)
		if n == MaxItems {
			return errNoItems
		}
		*l = append(*l, itemAs[T]{})
		var before *itemAs[T]
		if n > 0 {
			before = &(*l)[n-1]
		}
		if err := (*l)[n].readFrom(dec, before); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// item returns an item of an event of this type, without its data.
func (m *itemMeta) item(packed string) Item {
	it := Item{id: m.EventID, typ: unpackedAs(packed, m.Kind), traceID: m.TraceID}
	if traceOf(m.TraceParent) != uuid.Nil {
		it.traceParent = m.TraceParent
	}
	return it
}

// checkID sets the error of an item that has no id that an event can have.
func (it *Item) checkID() {
	_, follows := it.read.(named)
	if usual := follows && it.id == "" && it.jobID != uuid.Nil; it.Err == nil && !usual && !isItemID(it.id) {
		it.Err = errItemID
	}
}

func unpackedAs(packed string, kind Kind) string {
	switch packed {
	case TypesCreated:
		return TypeCreated
	case TypesRun:
		return TypeRun
	case TypesCommand:
		return TypeCommand
	case TypesAttemptCancels:
		return TypeAttemptCancel
	case TypesAttemptLogs:
		return TypeAttemptLog
	case TypesStatus:
		return TypeStatus
	}
	switch kind { //nolint:exhaustive // all others are of a Failed
	case jobstate.KindCompleted:
		return TypeCompleted
	case jobstate.KindWaiting:
		return TypeWaiting
	}
	return TypeFailed
}

var (
	errNoItems = fmt.Errorf("it has not 1 to %d items", MaxItems)
	errItemID  = errors.New("eventId is not that of an event")

	errNoStatus    = errors.New("it has neither a status nor a deletion")
	errFollowsNone = errors.New("it is an array, but follows no item")
)

// rawItems returns the items of an event unchanged.
func rawItems(e event.Event) ([]jsontext.Value, error) {
	var data struct {
		Items []jsontext.Value `json:"items"`
	}
	if err := jsonv2.Unmarshal(e.DataEncoded, &data, anyNames, jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, err
	}
	if n := len(data.Items); n == 0 || n > MaxItems {
		return nil, errNoItems
	}
	return data.Items, nil
}

// rawItem returns the JSON of one item; nil if there is no item with that number.
func rawItem(e event.Event, number int) jsontext.Value {
	raws, err := rawItems(e)
	if err != nil || number >= len(raws) {
		return nil
	}
	return raws[number]
}

// isItemID reports whether a text can be the id of an event: not empty, printable as a header, and not too long.
func isItemID(id string) bool {
	return id != "" && len(id) <= maxEventID && strings.TrimSpace(id) == id &&
		!strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' })
}

// traceOf returns the trace id of a traceparent as a UUID; zero if the text is not one.
func traceOf(traceparent string) uuid.UUID {
	if len(traceparent) != len("00-")+32+len("-")+16+len("-01") || !strings.HasPrefix(traceparent, "00-") ||
		traceparent[35] != '-' || traceparent[52] != '-' {
		return uuid.Nil
	}
	var trace [16]byte
	if _, err := hex.Decode(trace[:], []byte(traceparent[3:35])); err != nil {
		return uuid.Nil
	}
	if _, err := hex.DecodeString(traceparent[36:52] + traceparent[53:]); err != nil {
		return uuid.Nil
	}
	return trace
}
