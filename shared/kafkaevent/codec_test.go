package kafkaevent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// delivered returns a producer's message as a consumer receives it.
func delivered(t interface{ Fatal(...any) }, m *sarama.ProducerMessage) *sarama.ConsumerMessage {
	got := &sarama.ConsumerMessage{Topic: m.Topic, Partition: 2, Offset: 41}
	for _, h := range m.Headers {
		got.Headers = append(got.Headers, &h)
	}
	for to, from := range map[*[]byte]sarama.Encoder{&got.Key: m.Key, &got.Value: m.Value} {
		if from == nil {
			continue
		}
		b, err := from.Encode()
		if err != nil {
			t.Fatal(err)
		}
		*to = b
	}
	return got
}

func TestAnEventSurvivesItsRecord(t *testing.T) {
	t.Parallel()
	types := []string{
		jobevent.TypesCreated, jobevent.TypesRun, jobevent.TypesEnded, jobevent.TypeStatus, jobevent.TypeRejected,
		jobevent.TypeDeleted,
	}
	names := rapid.StringMatching(`x[a-z0-9]{1,18}`)
	text := rapid.Map( // the SDK trims the beginning and end of attributes
		rapid.StringOfN(rapid.RuneFrom([]rune("aZ09 %\"ä€𝄞日\u00a0")), 0, 40, -1),
		func(s string) string { return "ö" + s + "ß" })
	rapid.Check(t, func(t *rapid.T) {
		e := event.New()
		e.SetID(text.Draw(t, "id"))
		e.SetType(rapid.SampledFrom(types).Draw(t, "type"))
		e.SetSource("/jobweaver/test")
		if rapid.Bool().Draw(t, "with subject") {
			e.SetSubject(text.Draw(t, "subject"))
		}
		if rapid.Bool().Draw(t, "with time") {
			e.SetTime(time.UnixMicro(rapid.Int64Range(0, 1<<52).Draw(t, "time")).UTC())
		}
		for name, value := range rapid.MapOfN(names, text, 0, 5).Draw(t, "extensions") {
			e.SetExtension(name, value)
		}
		key := rapid.OneOf(rapid.Just(""), text).Draw(t, "key")
		if key != "" {
			e.SetExtension(jobevent.ExtPartitionKey, key)
		}
		least := 1
		if e.Type() == jobevent.TypeDeleted {
			least = 0
		}
		data := rapid.SliceOfN(rapid.Byte(), least, 100).Draw(t, "data")
		e.SetDataContentType(rapid.SampledFrom([]string{"application/json", "application/octet-stream"}).Draw(t, "content type"))
		if len(data) > 0 {
			e.DataEncoded = data
		}

		m, err := Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		record := delivered(t, m)
		if string(record.Key) != key {
			t.Fatalf("record key is %q, want %q", record.Key, key)
		}
		if got := EventType(record); got != e.Type() {
			t.Fatalf("type by header is %q, want %q", got, e.Type())
		}
		back, err := Decode(record)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := back.String(), e.String(); got != want {
			t.Fatalf("came back as\n%s\nwant\n%s", got, want)
		}
	})
}

func TestAStructuredRecordIsReadToo(t *testing.T) {
	t.Parallel()
	e, err := Decode(&sarama.ConsumerMessage{
		Headers: []*sarama.RecordHeader{{
			Key: []byte("content-type"), Value: []byte("application/cloudevents+json; charset=UTF-8"),
		}},
		Value: []byte(`{"specversion":"1.0","id":"1","source":"/x","type":"t","queue":"q","data":{"a":1}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if e.ID() != "1" || string(e.Data()) != `{"a":1}` || len(e.Extensions()) != 1 {
		t.Errorf("read %s", e)
	}
}

func TestADeletedJobIsATombstone(t *testing.T) {
	t.Parallel()
	job := uuid.Must(uuid.NewV7())
	deleted, err := jobevent.NewDeleted(jobevent.Meta{Function: "command", JobID: job, TraceID: job}, 12)
	if err != nil {
		t.Fatal(err)
	}
	e := deleted.Event()
	e.SetExtension(jobevent.ExtCausationID, "0")
	m, err := Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	if m.Value != nil || m.Key.Length() != len(job.String()) {
		t.Errorf("value %v, key %v", m.Value, m.Key)
	}
	record := delivered(t, m)
	for range 2 {
		back, err := Decode(record)
		if err != nil {
			t.Fatal(err)
		}
		if version, err := jobevent.DeletedVersion(jobevent.ItemOf(back)); err != nil || version != 12 || back.String() != e.String() {
			t.Errorf("came back as version %d of %v, %v", version, back, err)
		}
		record.Value = []byte{} // as other programs may write an event without data
	}
}

func TestWhatIsNoEventIsInvalid(t *testing.T) {
	t.Parallel()
	good := map[string]string{"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/x", "ce_type": "t"}
	with := func(name, value string) map[string]string {
		changed := map[string]string{name: value}
		for k, v := range good {
			if k != name {
				changed[k] = v
			}
		}
		return changed
	}
	for name, c := range map[string]struct {
		headers map[string]string
		value   []byte
	}{
		"a tombstone":             {good, nil},
		"no headers":              {nil, []byte("{}")},
		"an unknown spec version": {with("ce_specversion", "7"), []byte("{}")},
		"no id":                   {with("ce_id", ""), []byte("{}")},
		"a time that is none":     {with("ce_time", "yesterday"), []byte("{}")},
		"a source that is none":   {with("ce_source", "%zz"), []byte("{}")},
		"a bad attribute name":    {with("ce_not-a-name", "1"), []byte("{}")},
		"structured garbage":      {map[string]string{"content-type": "application/cloudevents+json"}, []byte("{")},
		"a structured batch": {
			map[string]string{"content-type": "application/cloudevents-batch+json"}, []byte("[]"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &sarama.ConsumerMessage{Topic: "job-created", Value: c.value}
			for k, v := range c.headers {
				m.Headers = append(m.Headers, &sarama.RecordHeader{Key: []byte(k), Value: []byte(v)})
			}
			e, err := Decode(m)
			if !errors.Is(err, jobevent.ErrInvalid) {
				t.Errorf("decoded as %v, error %v", e, err)
			}
		})
	}
}

func TestWhatCannotBePublishedIsInvalid(t *testing.T) {
	t.Parallel()
	unknown := event.New()
	unknown.SetID("1")
	unknown.SetSource("/x")
	unknown.SetType("io.jobweaver.unknown.to.us")
	noID := event.New()
	noID.SetSource("/x")
	noID.SetType(jobevent.TypesCreated)
	for name, e := range map[string]event.Event{"an unknown type": unknown, "no id": noID} {
		if _, err := Encode(e); !errors.Is(err, jobevent.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add("ce_specversion\n1.0\nce_id\n1\nce_source\n/x\nce_type\nt\nce_time\n2026-01-01T00:00:00Z", []byte(`{}`))
	f.Add("ce_specversion\n1.0\nce_id\n1\nce_source\n/x\nce_type\n"+jobevent.TypeDeleted, []byte(nil))
	f.Add("ce_specversion\n1.0\nce_id\n1\nce_source\n/x\nce_type\n"+jobevent.TypeDeleted, []byte{})
	f.Add("content-type\napplication/cloudevents+json", []byte(`{"specversion":"1.0","id":"1","source":"/x","type":"t"}`))
	f.Add("content-type\napplication/cloudevents-batch+json", []byte(`[]`))
	f.Fuzz(func(t *testing.T, headers string, value []byte) {
		m := &sarama.ConsumerMessage{Topic: "t", Value: value}
		lines := strings.Split(headers, "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			m.Headers = append(m.Headers, &sarama.RecordHeader{Key: []byte(lines[i]), Value: []byte(lines[i+1])})
		}
		EventType(m)
		e, err := Decode(m)
		if err != nil && !errors.Is(err, jobevent.ErrInvalid) {
			t.Errorf("%v does not wrap ErrInvalid", err)
		}
		if err != nil {
			return
		}
		if e.Validate() != nil {
			t.Errorf("decoded an invalid event: %v", e.Validate())
		}
	})
}

func BenchmarkCodec(b *testing.B) {
	job := uuid.Must(uuid.NewV7())
	order, err := jobevent.New(jobevent.TypeRun, jobevent.Meta{
		Function: "ingest", ID: jobevent.RunID(job, 1), JobID: job, TraceID: job, Key: jobevent.RoutingKey(3),
	}, jobevent.Run{JobID: job})
	if err != nil {
		b.Fatal(err)
	}
	e := order.Alone()
	m, err := Encode(e)
	if err != nil {
		b.Fatal(err)
	}
	record := delivered(b, m)
	for name, f := range map[string]func() error{
		"encode": func() error { _, err := Encode(e); return err },
		"decode": func() error { _, err := Decode(record); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
