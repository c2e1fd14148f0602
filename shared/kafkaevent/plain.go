package kafkaevent

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Here stands the quick way of the events that the house says itself: version 1.0, binary, JSON, text
// in all extensions. Everything else takes the SDK's way, which gives the same for these too, at some
// five times the cost and a hundred allocations.

// headerPrefix stands before an attribute's name in a record's header.
const headerPrefix = "ce_"

var (
	jsonType = event.ApplicationJSON

	keyContentType = []byte("content-type")
	keySpecVersion = []byte("ce_specversion")
	keyID          = []byte("ce_id")
	keySource      = []byte("ce_source")
	keyType        = []byte("ce_type")
	keySubject     = []byte("ce_subject")
	keyTime        = []byte("ce_time")

	valueJSON    = []byte(jsonType)
	valueVersion = []byte(event.CloudEventsVersionV1)
)

// extension is the name of one that the house sets, and its header's. Known, they need no copy a record.
type extension struct {
	name   string
	header []byte
}

var knownExtensions = func() map[string]extension {
	known := map[string]extension{}
	for _, name := range []string{
		jobevent.ExtPartitionKey, jobevent.ExtCorrelationID, jobevent.ExtCausationID, jobevent.ExtTraceParent,
		jobevent.ExtQueue, jobevent.ExtVersion, jobevent.ExtSignature,
	} {
		known[name] = extension{name, []byte(headerPrefix + name)}
	}
	return known
}()

// plainWriter writes the records of one batch, of which the memory is shared, and used again for another one.
type plainWriter struct {
	messages []sarama.ProducerMessage
	values   []sarama.ByteEncoder
	headers  []sarama.RecordHeader
	text     []byte // what is left of the current piece
	first    []byte // the first piece, which does for most batches
}

const (
	headersEach = 12   // of an event: specversion, type, source, id, time, subject, content type, five extensions
	textEach    = 400  // bytes of all its values
	textPiece   = 64e3 // where they are more, it comes in pieces of about this size
	writerMost  = 2000 // events: the memory of a larger batch is not kept
)

var plainWriters = sync.Pool{New: func() any { return new(plainWriter) }}

func newPlainWriter(events int) *plainWriter {
	w := plainWriters.Get().(*plainWriter)
	w.messages, w.values = slices.Grow(w.messages[:0], events), slices.Grow(w.values[:0], 2*events)
	w.headers = slices.Grow(w.headers[:0], headersEach*events)
	w.first = slices.Grow(w.first[:0], textEach*events)
	w.text = w.first
	return w
}

// release gives the memory back: nobody may look at the records any more.
func (w *plainWriter) release() {
	if cap(w.messages) > writerMost {
		return
	}
	clear(w.messages) // what they point to is the events'
	clear(w.values)
	w.text = nil
	plainWriters.Put(w)
}

// write returns nil for an event that is not plain.
func (w *plainWriter) write(e event.Event) *sarama.ProducerMessage {
	ctx, ok := e.Context.(*event.EventContextV1)
	if !ok || !isPlain(ctx) || len(e.FieldErrors) > 0 || e.DataBase64 {
		return nil
	}
	source, ok := sourceText(&ctx.Source.URL)
	if !ok {
		return nil
	}
	first := len(w.headers)
	w.header(keySpecVersion, valueVersion)
	w.header(keyType, w.copied(ctx.Type))
	w.header(keySource, w.copied(source))
	w.header(keyID, w.copied(ctx.ID))
	if ctx.Time != nil {
		w.header(keyTime, w.instant(ctx.Time.Time))
	}
	if ctx.Subject != nil {
		w.header(keySubject, w.copied(*ctx.Subject))
	}
	if ctx.DataContentType != nil {
		w.header(keyContentType, valueJSON)
	}
	var m sarama.ProducerMessage
	if len(e.DataEncoded) > 0 {
		m.Value = w.value(e.DataEncoded)
	}
	for name, value := range ctx.Extensions {
		text := w.copied(value.(string)) // isPlain has looked
		key := knownExtensions[name].header
		if key == nil {
			key = []byte(headerPrefix + name)
		}
		w.header(key, text)
		if name == jobevent.ExtPartitionKey && len(text) > 0 {
			m.Key = w.value(text)
		}
	}
	m.Headers = w.headers[first:len(w.headers):len(w.headers)]
	w.messages = append(w.messages, m)
	return &w.messages[len(w.messages)-1]
}

func (w *plainWriter) header(key, value []byte) {
	w.headers = append(w.headers, sarama.RecordHeader{Key: key, Value: value})
}

func (w *plainWriter) value(b []byte) sarama.Encoder {
	w.values = append(w.values, b)
	return &w.values[len(w.values)-1] // never grows: at most two a message
}

func (w *plainWriter) copied(text string) []byte {
	w.room(len(text))
	w.text = append(w.text, text...)
	return w.cut(len(text))
}

func (w *plainWriter) instant(at time.Time) []byte {
	w.room(len(time.RFC3339Nano))
	before := len(w.text)
	w.text = at.UTC().AppendFormat(w.text, time.RFC3339Nano)
	return w.cut(len(w.text) - before)
}

func (w *plainWriter) room(n int) {
	if cap(w.text)-len(w.text) < n {
		w.text = make([]byte, 0, max(n, textPiece))
	}
}

func (w *plainWriter) cut(n int) []byte {
	end := len(w.text)
	return w.text[end-n : end : end]
}

// isPlain says that the SDK would find nothing wrong with the attributes, and change nothing.
func isPlain(ctx *event.EventContextV1) bool {
	if ctx.DataSchema != nil || !isTrimmed(ctx.ID) || !isTrimmed(ctx.Type) ||
		ctx.Subject != nil && !isTrimmed(*ctx.Subject) ||
		ctx.DataContentType != nil && *ctx.DataContentType != jsonType {
		return false
	}
	for name, value := range ctx.Extensions {
		if _, ok := value.(string); !ok || !isName(name) {
			return false
		}
	}
	return true
}

// readPlain reads a record if its event is plain.
func readPlain(m *sarama.ConsumerMessage) (event.Event, bool) {
	if len(m.Value) == 0 && EventType(m) != jobevent.TypeDeleted {
		return event.Event{}, false
	}
	r := plainReader{text: valuesOf(m)}
	// One piece of memory for all that an event always has.
	whole := &struct {
		ctx     event.EventContextV1
		at      types.Timestamp
		subject string
	}{}
	ctx := &whole.ctx
	version := false
	for _, h := range m.Headers {
		value := r.next(len(h.Value))
		var ok bool
		switch string(h.Key) {
		case "ce_specversion":
			version = value == event.CloudEventsVersionV1
			ok = version
		case "ce_id":
			ctx.ID, ok = value, isTrimmed(value)
		case typeHeader:
			ctx.Type, ok = value, isTrimmed(value)
		case "ce_source":
			ctx.Source.URL, ok = sourceURL(value)
		case "ce_subject":
			whole.subject, ctx.Subject, ok = value, &whole.subject, isTrimmed(value)
		case "ce_time":
			var err error
			whole.at.Time, err = time.Parse(time.RFC3339Nano, value)
			ctx.Time, ok = &whole.at, err == nil && !whole.at.IsZero()
		case "content-type":
			ctx.DataContentType, ok = &jsonType, value == jsonType
		default:
			ok = addExtension(ctx, h.Key, value, len(m.Headers))
		}
		if !ok {
			return event.Event{}, false
		}
	}
	if !version || ctx.ID == "" || ctx.Type == "" || ctx.Source.Path == "" {
		return event.Event{}, false
	}
	e := event.Event{Context: ctx}
	if len(m.Value) > 0 {
		e.DataEncoded = m.Value
	}
	return e, true
}

func addExtension(ctx *event.EventContextV1, key []byte, value string, headers int) bool {
	name, attribute := bytes.CutPrefix(key, []byte(headerPrefix))
	if !attribute { // such as a tracing library's own header; the SDK does not mind capitals
		return bytes.Equal(key, bytes.ToLower(key))
	}
	return setExtension(ctx, extensionName(name), value, headers)
}

func setExtension(ctx *event.EventContextV1, name, value string, headers int) bool {
	if !isName(name) || isLocation(name) {
		return false
	}
	if ctx.Extensions == nil {
		ctx.Extensions = make(map[string]any, min(headers, 8))
	}
	ctx.Extensions[name] = value
	return true
}

// extensionName is a copy of the name, or for a known one none.
func extensionName(name []byte) string {
	if known, ok := knownExtensions[string(name)]; ok {
		return known.name
	}
	return string(name)
}

// plainReader cuts one copy of all values into the values.
type plainReader struct{ text string }

func (r *plainReader) next(n int) string {
	value := r.text[:n]
	r.text = r.text[n:]
	return value
}

func valuesOf(m *sarama.ConsumerMessage) string {
	n := 0
	for _, h := range m.Headers {
		n += len(h.Value)
	}
	var text strings.Builder
	text.Grow(n)
	for _, h := range m.Headers {
		text.Write(h.Value)
	}
	return text.String()
}

// isTrimmed: the SDK trims what an attribute begins and ends with, and refuses one that is then empty.
func isTrimmed(s string) bool { return s != "" && strings.TrimSpace(s) == s }

// isName says that the name needs no folding and is none of the attributes that an extension must not be.
func isName(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	switch name {
	case "", "id", "source", "type", "datacontenttype", "subject", "time", "specversion", "dataschema":
		return false
	}
	return true
}

// isLocation: the SDK puts these on every event that it reads, so they are taken off again.
func isLocation(name string) bool {
	return name == "kafkaoffset" || name == "kafkapartition" || name == "kafkatopic"
}

// sources remembers the few that there are, so that none is parsed or put together for each record.
var sources struct {
	sync.RWMutex
	known map[string]url.URL
}

const sourcesMost = 64

// sourceURL reads a source that is a plain path.
func sourceURL(text string) (url.URL, bool) {
	sources.RLock()
	u, known := sources.known[text]
	sources.RUnlock()
	if known {
		return u, true
	}
	parsed, err := url.Parse(text)
	if err != nil || *parsed != (url.URL{Path: text}) || parsed.String() != text || !strings.HasPrefix(text, "/") {
		return url.URL{}, false
	}
	sources.Lock()
	defer sources.Unlock()
	if sources.known == nil {
		sources.known = map[string]url.URL{}
	}
	if len(sources.known) < sourcesMost {
		sources.known[strings.Clone(text)] = url.URL{Path: strings.Clone(text)}
	}
	return *parsed, true
}

// sourceText writes a source that is a plain path.
func sourceText(u *url.URL) (string, bool) {
	if *u != (url.URL{Path: u.Path}) {
		return "", false
	}
	_, ok := sourceURL(u.Path)
	return u.Path, ok
}
