package funchost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// records collects the raw records of a topic from now on.
func (p *place) records(topic string) <-chan *sarama.ConsumerMessage {
	p.t.Helper()
	tailer, err := kafkaevent.NewTailer(p.cfg.Kafka, topic)
	if err != nil {
		p.t.Fatal(err)
	}
	got := make(chan *sarama.ConsumerMessage, 100)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = tailer.Run(ctx, func(m *sarama.ConsumerMessage) { got <- m })
	}()
	p.t.Cleanup(func() { cancel(); <-ended })
	await(p.t, "the topic can be read", tailer.Started())
	return got
}

func redriveOf(t *testing.T, cfg Config) Redrive {
	t.Helper()
	redrive, closing, err := NewRedrive(cfg, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closing)
	return redrive
}

func dataOf(t *testing.T, e event.Event) jobevent.Rejected {
	t.Helper()
	data, err := jobevent.DecodeAs[jobevent.Rejected](jobevent.ItemOf(e), jobevent.TypeRejected)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestARedriveRepublishesARecordUnchanged(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	rejected, there := p.rejected(), p.records(jobevent.RunTopic(p.in))
	p.run(p.function(func(context.Context, []jobevent.Item) ([]jobevent.Item, error) { return nil, nil }))
	redrive := redriveOf(t, p.cfg)
	headers := []sarama.RecordHeader{
		{Key: []byte("who"), Value: []byte("me")}, {Key: []byte("\xfe"), Value: []byte("\x00\xff")},
		{Key: []byte("who"), Value: []byte("stranger")}, {Key: []byte("a"), Value: []byte{}},
	}
	for n, value := range [][]byte{[]byte("\x00\xff garbage"), nil, {}} {
		p.sendRaw(value, headers...)
		was := await(t, "the record is there", there)
		e, _ := rejected.get(rejected.wait(t, 2*n+1)[2*n])
		data := dataOf(t, e)
		if !data.Whole() {
			t.Fatalf("the report is %+v", data)
		}
		if err := redrive(testwait.Within(t, time.Minute), data); err != nil {
			t.Fatal(err)
		}
		is := await(t, "the record is there again", there)
		if is.Offset <= was.Offset || !is.Timestamp.Equal(was.Timestamp) || string(is.Key) != string(was.Key) ||
			string(is.Value) != string(was.Value) || (is.Value == nil) != (was.Value == nil) || is.Partition != was.Partition {
			t.Errorf("there is %+v, and was %+v", is, was)
		}
		same := func(a, b *sarama.RecordHeader) bool {
			return string(a.Key) == string(b.Key) && string(a.Value) == string(b.Value)
		}
		if !slices.EqualFunc(is.Headers, was.Headers, same) {
			t.Errorf("headers are %v, and were %v", is.Headers, was.Headers)
		}
		again, _ := rejected.get(rejected.wait(t, 2*n+2)[2*n+1])
		if got := dataOf(t, again); got.Offset != is.Offset || !got.RecordedAt.Equal(*data.RecordedAt) {
			t.Errorf("rejected again as %+v", got)
		}
	}
}

func TestARedrivenRecordIsHandled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	answered, rejected := p.answered(), p.rejected()
	var mended atomic.Bool
	p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		if !mended.Load() {
			return nil, fmt.Errorf("cannot do that yet: %w", jobevent.ErrInvalid)
		}
		return p.answers(batch), nil
	}))
	p.send(0, 1)
	e, _ := rejected.get(rejected.wait(t, 1)[0])
	mended.Store(true)
	if err := redriveOf(t, p.cfg)(testwait.Within(t, time.Minute), dataOf(t, e)); err != nil {
		t.Fatal(err)
	}
	if ids := answered.wait(t, 1); !slices.Equal(ids, []string{"0"}) {
		t.Errorf("handled %v", ids)
	}
}

// A redrive must not make an unsigned event valid.
func TestARedrivenRecordIsNotSigned(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.cfg.EventKeysFile, p.cfg.EventSign, p.cfg.EventVerify = newKeysFile(t), verifyAll, verifyAll
	rejected := p.rejected()
	p.run(p.function(func(context.Context, []jobevent.Item) ([]jobevent.Item, error) { return nil, nil }))
	unsigned := p.cfg
	unsigned.EventKeysFile, unsigned.EventSign, unsigned.EventVerify = "", "", ""
	publish, closing, err := NewPublisher(unsigned)
	if err != nil {
		t.Fatal(err)
	}
	defer closing()
	if err := publish(testwait.Within(t, time.Minute), []jobevent.Item{p.event(p.in, "forged")}); err != nil {
		t.Fatal(err)
	}
	e, _ := rejected.get(rejected.wait(t, 1)[0])
	if err := redriveOf(t, p.cfg)(testwait.Within(t, time.Minute), dataOf(t, e)); err != nil {
		t.Fatal(err)
	}
	again, _ := rejected.get(rejected.wait(t, 2)[1])
	if data := dataOf(t, again); !strings.HasPrefix(data.Reason, "unsigned: ") {
		t.Errorf("rejected again for %q", data.Reason)
	}
}

// The report of a record of the dead-letter topic would be on the same topic, and could be rejected like it.
func TestARecordOfTheDeadLetterTopicIsNotReported(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	about := jobevent.RunTopic(p.in)
	handled := newSeen()
	f := Function{
		Name: p.name, Topics: []string{jobevent.TopicDeadLetter},
		Skips: func(_, typ string) bool { return typ != jobevent.TypeRejected },
		Handle: func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
			for _, e := range batch {
				data, err := jobevent.Decode[jobevent.Rejected](e)
				if err != nil {
					return nil, err
				}
				if data.Topic == about {
					handled.addItems(e)
				}
				if data.Topic == about && data.Offset == 1 {
					return nil, fmt.Errorf("no: %w", jobevent.ErrInvalid)
				}
			}
			return nil, nil
		},
	}
	reports := p.tail(jobevent.TopicDeadLetter, func(e jobevent.Item) bool {
		data, err := jobevent.Decode[jobevent.Rejected](e)
		return err == nil && (data.Topic == about || data.Topic == jobevent.TopicDeadLetter && strings.Contains(data.Reason, "no: "))
	})
	p.run(f)
	publish, closing, err := NewPublisher(p.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer closing()
	for n := range int64(3) {
		dead, err := jobevent.New(jobevent.TypeDeadLettered, jobevent.Meta{Function: "test", ID: fmt.Sprint(p.name, n)}, struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := Rejected("test", &sarama.ConsumerMessage{Topic: about, Offset: n}, jobevent.Item{}, nil, "reason")
		if err != nil {
			t.Fatal(err)
		}
		if err := publish(testwait.Within(t, time.Minute), []jobevent.Item{dead, e}); err != nil {
			t.Fatal(err)
		}
	}
	for ids := []string{}; !slices.Contains(ids, about+"/0/2.rejected"); { // the last one follows the refused one
		ids = handled.wait(t, len(ids)+1)
	}
	if ids := reports.wait(t, 3); len(ids) != 3 {
		t.Errorf("on the dead letters are %v", ids)
	}
}

func TestAnEventOverHTTPThatCanNeverBeHandledIsReported(t *testing.T) {
	t.Parallel()
	invalid := func(context.Context, []jobevent.Item) ([]jobevent.Item, error) {
		return nil, fmt.Errorf("no such thing: %w", jobevent.ErrInvalid)
	}
	s := newSite(t, Config{}, Function{Handle: invalid})
	if got := s.do("POST", "/", `{"a":1}`, append(binary("1"), "Ce-Partitionkey", "k")...); got.status != 400 {
		t.Fatalf("answered %+v", got)
	}
	e, _ := s.sink.get(s.sink.wait(t, 1)[0])
	data := dataOf(t, e)
	if data.Topic != jobevent.TopicHeartbeat || data.Offset != -1 || data.Partition != -1 || string(data.Value) != `{"a":1}` ||
		string(data.Key) != "k" || !strings.HasPrefix(data.Reason, "invalid: ") || !data.Whole() {
		t.Errorf("the report is %+v", data)
	}
	// A redrive sends it to the sink unchanged.
	sink := newSeen()
	redrive := redriveOf(t, Config{Sink: serve(t, func(w http.ResponseWriter, r *http.Request) {
		if e, err := readEvent(w, r); err == nil {
			sink.add(e)
		}
	})})
	if err := redrive(testwait.Within(t, time.Minute), data); err != nil {
		t.Fatal(err)
	}
	again, _ := sink.get("1")
	if again.Type() != jobevent.TypeHeartbeat || again.Source() != "/test" || string(again.Data()) != `{"a":1}` {
		t.Errorf("sent is %v", again)
	}
	data.Value, data.RecordHeaders = []byte("garbage"), []jobevent.RecordHeader{}
	if err := redrive(testwait.Within(t, time.Minute), data); !errors.Is(err, jobevent.ErrInvalid) || !strings.Contains(err.Error(), "CloudEvent") {
		t.Errorf("garbage is redriven: %v", err)
	}
	// A report, and an event without a topic, are not reported.
	for _, typ := range []string{jobevent.TypeRejected, "t"} {
		headers := binary(typ)
		headers[7] = typ
		if got := s.do("POST", "/", "{}", headers...); got.status != 400 {
			t.Errorf("answered %+v", got)
		}
	}
	if err := s.stop(); err != nil { // afterwards all reports are published
		t.Fatal(err)
	}
	if ids := s.sink.wait(t, 1); len(ids) != 1 {
		t.Errorf("the reports are %v", ids)
	}
}

func TestARedriveThatTheSinkRefusesFails(t *testing.T) {
	t.Parallel()
	redrive := redriveOf(t, Config{Sink: serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })})
	m, err := kafkaevent.Encode(ofJob(t, jobevent.TypeCreated, "1", [16]byte{1}).Alone())
	if err != nil {
		t.Fatal(err)
	}
	if err := redrive(testwait.Within(t, time.Minute), rejectedData(kafkaevent.Consumed(m), "")); !errors.Is(err, jobevent.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}
