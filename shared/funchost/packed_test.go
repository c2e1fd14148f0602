package funchost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/eventkeys"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// packedOf returns one event with these items, followed by unreadable ones.
func packedOf(t *testing.T, items []jobevent.Item, unreadable ...string) event.Event {
	t.Helper()
	e := items[0].Alone()
	add := func(text []byte) {
		e.DataEncoded = slices.Concat(bytes.TrimSuffix(e.DataEncoded, []byte("]}")), []byte(","), text, []byte("]}"))
	}
	for _, it := range items[1:] {
		add(bytes.TrimSuffix(bytes.TrimPrefix(it.Alone().DataEncoded, []byte(`{"items":[`)), []byte("]}")))
	}
	for _, text := range unreadable {
		add([]byte(text))
	}
	return e
}

// sendEvents publishes events to the function's topic unchanged, signed with the place's keys.
func (p *place) sendEvents(events ...event.Event) {
	p.t.Helper()
	keys, err := eventkeys.Open(p.cfg.EventKeysFile)
	if err != nil {
		p.t.Fatal(err)
	}
	keys.Sign(events)
	producer, err := kafkaevent.NewProducer(p.cfg.Kafka)
	if err != nil {
		p.t.Fatal(err)
	}
	defer producer.Close()
	if err := producer.Publish(testwait.Within(p.t, time.Minute), events); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) events(from, to int) (events []jobevent.Item) {
	for _, id := range numbers(from, to) {
		events = append(events, p.event(p.in, id))
	}
	return events
}

func TestEventsAreHandledItemByItemInTheirOrder(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	answered := p.answered()
	p.send(0, 3)
	p.sendEvents(packedOf(t, p.events(3, 40)), packedOf(t, p.events(40, 41)))
	p.send(41, 50)
	stop := p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		for _, e := range batch {
			if e.Type() != jobevent.TypeRun {
				t.Errorf("a handler gets %s", e.Type())
			}
		}
		return p.answers(batch), nil
	}))
	if order := answered.wait(t, 50); !slices.Equal(order, numbers(0, 50)) {
		t.Errorf("answers came as %v", order)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	again := newSeen()
	p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		again.addItems(batch...)
		return nil, nil
	}))
	p.sendEvents(packedOf(t, p.events(50, 51)))
	if order := again.wait(t, 1); order[0] != "50" {
		t.Errorf("acknowledged events were delivered again: %v", order)
	}
}

func TestManyItemsAreHandledInSeveralBatches(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const events = 80
	for n := range events {
		p.sendEvents(packedOf(t, p.events(n*jobevent.MaxRunItems, (n+1)*jobevent.MaxRunItems)))
	}
	got := newSeen()
	p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		if len(batch) > maxBatch {
			t.Errorf("a batch of %d", len(batch))
		}
		got.addItems(batch...)
		return nil, nil
	}))
	if order := got.wait(t, events*jobevent.MaxRunItems); !slices.Equal(order, numbers(0, events*jobevent.MaxRunItems)) {
		t.Errorf("handled in another order")
	}
}

// Items that are unreadable or refused, or with which the handler panics, are each rejected, in a signed event so that
// a redrive is accepted. The other items are handled.
func TestABadItemIsRejectedAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.cfg.EventKeysFile, p.cfg.EventSign, p.cfg.EventVerify = newKeysFile(t), verifyAll, verifyAll
	answered, rejected := p.answered(), p.rejected()
	p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		for _, e := range batch {
			if e.ID() == "2" {
				return nil, fmt.Errorf("no: %w", jobevent.ErrInvalid)
			}
			if e.ID() == "5" {
				panic("oh no")
			}
		}
		return p.answers(batch), nil
	}))
	p.sendEvents(packedOf(t, p.events(0, 8), `{"eventId":7}`, `true`))
	if order := answered.wait(t, 6); !slices.Equal(order, []string{"0", "1", "3", "4", "6", "7"}) {
		t.Errorf("handled %v", order)
	}
	keys, err := eventkeys.Open(p.cfg.EventKeysFile)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, id := range rejected.wait(t, 4) {
		letter, _ := rejected.get(id)
		data, err := jobevent.Decode[jobevent.Rejected](jobevent.ItemOf(letter))
		if err != nil || !data.Whole() || data.Offset != 0 {
			t.Fatalf("%+v, %v", data, err)
		}
		e, err := kafkaevent.Decode(kafkaevent.Consumed(produced(data)))
		if err != nil {
			t.Fatal(err)
		}
		if err := keys.Check(e); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		items, err := jobevent.Unpack(e)
		if err != nil || len(items) != 1 {
			t.Fatalf("%d items, %v", len(items), err)
		}
		reason, _, _ := strings.Cut(data.Reason, ":")
		name := id[strings.LastIndex(id, "/")+1:]
		if items[0].Err == nil {
			name += " " + items[0].ID()
		}
		reasons[name] = reason
	}
	if want := map[string]string{
		"2.rejected 2": "invalid", "5.rejected 5": "panic", "8.rejected": "undecodable", "9.rejected": "undecodable",
	}; fmt.Sprint(reasons) != fmt.Sprint(want) {
		t.Errorf("dead letters are %v", reasons)
	}
}

func TestAnEventWithUnreadableItemsIsRejectedOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	rejected, got := p.rejected(), newSeen()
	p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		got.addItems(batch...)
		return nil, nil
	}))
	bad := packedOf(t, p.events(0, 3))
	bad.DataEncoded = []byte(`{"items":{}}`)
	p.sendEvents(bad, packedOf(t, p.events(3, 4)))
	if order := got.wait(t, 1); order[0] != "3" {
		t.Errorf("handled %v", order)
	}
	letter, _ := rejected.get(rejected.wait(t, 1)[0])
	data, err := jobevent.Decode[jobevent.Rejected](jobevent.ItemOf(letter))
	if err != nil || string(data.Value) != `{"items":{}}` || !strings.HasPrefix(data.Reason, "undecodable: ") {
		t.Errorf("%+v, %v", data, err)
	}
}

func TestAnUnsignedEventIsRefusedWithAllItsItems(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	rejected := p.rejected()
	forged := packedOf(t, p.events(0, 5))
	p.sendEvents(forged) // unsigned: there are no keys yet
	p.cfg.EventKeysFile, p.cfg.EventSign, p.cfg.EventVerify = newKeysFile(t), verifyAll, verifyAll
	p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		t.Errorf("handled %v", batch)
		return nil, nil
	}))
	letter, _ := rejected.get(rejected.wait(t, 1)[0])
	data, err := jobevent.Decode[jobevent.Rejected](jobevent.ItemOf(letter))
	if err != nil || !strings.HasPrefix(data.Reason, "unsigned: ") || data.Headers["ce_"+jobevent.ExtSignature] != "" {
		t.Errorf("%+v, %v", data, err)
	}
}

// post sends an event to a site.
func (s *site) post(e event.Event) answered {
	s.t.Helper()
	headers := []string{
		"Ce-Specversion", "1.0", "Ce-Id", e.ID(), "Ce-Source", e.Source(), "Ce-Type", e.Type(), "Content-Type", "application/json",
	}
	if signature := jobevent.Extension(e, jobevent.ExtSignature); signature != "" {
		headers = append(headers, "Ce-Jwsig", signature)
	}
	return s.do("POST", "/", string(e.Data()), headers...)
}

func someJobs(t *testing.T, n int) (events []jobevent.Item) {
	t.Helper()
	for _, id := range numbers(0, n) {
		job := uuid.New()
		e, err := jobevent.New(jobevent.TypeCreated, jobevent.Meta{Function: "test", ID: id, JobID: job}, jobevent.Created{JobID: job})
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func TestOverHTTPABadItemIsRejectedAlone(t *testing.T) {
	t.Parallel()
	path, got := newKeysFile(t), newSeen()
	s := newSite(t, Config{EventKeysFile: path}, Function{
		Handle: func(_ context.Context, batch []jobevent.Item) (events []jobevent.Item, err error) {
			for _, e := range batch {
				if e.ID() == "3" {
					return nil, fmt.Errorf("no: %w", jobevent.ErrInvalid)
				}
				job := uuid.MustParse(e.Subject())
				events = append(events, ofJob(t, jobevent.TypeStatus, "status "+e.ID(), job))
			}
			got.addItems(batch...)
			return events, nil
		},
	})
	e := sign(t, path, packedOf(t, someJobs(t, 6), "[]"))
	if answer := s.post(e); answer.status != http.StatusAccepted {
		t.Fatalf("answered %+v", answer)
	}
	if order := got.wait(t, 5); !slices.Equal(order, []string{"0", "1", "2", "4", "5"}) {
		t.Errorf("handled %v", order)
	}
	keys, err := eventkeys.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for id, reason := range map[string]string{e.ID() + "/3": "invalid", e.ID() + "/6": "undecodable"} {
		letter, times := s.sink.get(jobevent.TopicCreated + "/" + id + ".rejected")
		if times == 0 {
			t.Fatalf("no dead letter of %s", id)
		}
		data, err := jobevent.Decode[jobevent.Rejected](jobevent.ItemOf(letter))
		if err != nil || !strings.HasPrefix(data.Reason, reason) || data.Topic != jobevent.TopicCreated || data.Offset != -1 {
			t.Errorf("%+v, %v", data, err)
		}
		alone, err := kafkaevent.Decode(kafkaevent.Consumed(produced(data)))
		if err != nil || keys.Check(alone) != nil {
			t.Errorf("%s: %v, %v", id, err, keys.Check(alone))
		}
	}
	for _, id := range []string{"0", "1", "2", "4", "5"} {
		if _, times := s.sink.get("status " + id); times != 1 {
			t.Errorf("the status of %s was published %d times", id, times)
		}
	}
}

// An event has one answer for all its items: it must not be a 2xx before the rejections are published.
func TestOverHTTPAnEventComesAgainUntilItsRejectionsArePublished(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	letters := newSeen()
	sink := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		} else if e, err := readEvent(w, r); err == nil {
			letters.add(e)
		}
	})
	s := newSite(t, Config{Sink: sink, PublishWait: 50 * time.Millisecond}, Function{
		Handle: func(context.Context, []jobevent.Item) ([]jobevent.Item, error) { return nil, nil },
	})
	e := packedOf(t, someJobs(t, 1), "1")
	if answer := s.post(e); answer.status != http.StatusServiceUnavailable {
		t.Errorf("answered %+v", answer)
	}
	up.Store(true)
	// PublishWait may also be too short for a sink that works.
	testwait.Until(t, "its rejection to be published", func() bool { return s.post(e).status == http.StatusAccepted })
	letters.wait(t, 1)
}

func TestOverHTTPATemporaryFailureMakesTheEventComeAgain(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	s := newSite(t, Config{}, Function{
		Handle: func(context.Context, []jobevent.Item) ([]jobevent.Item, error) {
			switch calls.Add(1) {
			case 1:
				return nil, fmt.Errorf("no: %w", jobevent.ErrInvalid)
			case 2: // for one half
				return []jobevent.Item{ofJob(t, jobevent.TypeStatus, "status", uuid.New())}, nil
			}
			return nil, errors.New("store away")
		},
	})
	if answer := s.post(packedOf(t, someJobs(t, 4))); answer.status != http.StatusServiceUnavailable {
		t.Errorf("answered %+v", answer)
	}
	if _, times := s.sink.get("status"); times != 1 {
		t.Errorf("what followed from the first half was published %d times", times)
	}
}

func TestOverHTTPAnEventWithoutItemsIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{}, Function{
		Handle: func(context.Context, []jobevent.Item) ([]jobevent.Item, error) { t.Error("called"); return nil, nil },
	})
	e := packedOf(t, someJobs(t, 1))
	e.DataEncoded = []byte(`{"items":[]}`)
	if answer := s.post(e); answer.status != http.StatusBadRequest {
		t.Errorf("answered %+v", answer)
	}
	if _, times := s.sink.get(jobevent.TopicCreated + "/" + e.ID() + ".rejected"); times != 1 {
		t.Errorf("rejected %d times", times)
	}
}

func TestItemsPublishedTogetherAreOneSignedRequest(t *testing.T) {
	t.Parallel()
	path := newKeysFile(t)
	keys, err := eventkeys.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var requests []string
	got := newSeen()
	p := newSinkPublisher(t, "", func(w http.ResponseWriter, r *http.Request) {
		e, err := readEvent(w, r)
		if err == nil {
			err = keys.Check(e)
		}
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, e.Type())
		got.addItems(unpacked(t, e)...)
	})
	p.keys = keys
	events := someJobs(t, 300)
	for i, id := range numbers(0, 3) {
		events = append(events, ofJob(t, jobevent.TypeStatus, "status "+id, uuid.MustParse(events[i].Subject())))
	}
	if err := p.publish(testwait.Within(t, time.Minute), events); err != nil {
		t.Fatal(err)
	}
	want := []string{
		jobevent.TypesCreated, jobevent.TypeStatus, jobevent.TypeStatus, jobevent.TypeStatus, jobevent.TypesStatus,
	}
	if !slices.Equal(requests, want) {
		t.Errorf("%v were sent", requests)
	}
	if n := len(got.wait(t, 303)); n != 303 {
		t.Errorf("%d events", n)
	}
}

func TestUnsentItemsAreReturnedJobByJob(t *testing.T) {
	t.Parallel()
	p := newSinkPublisher(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Ce-Type") == jobevent.TypesCreated {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	events := someJobs(t, 3)
	job := uuid.New()
	events = append(events, ofJob(t, jobevent.TypeCommand, "command", job), ofJob(t, jobevent.TypeStatus, "other", uuid.New()))
	err := p.publish(testwait.Within(t, time.Minute), events) // ends with the last try
	var left []string
	for _, e := range unpublished(events, err) {
		left = append(left, e.ID())
	}
	if err == nil || !slices.Equal(left, []string{"0", "1", "2"}) {
		t.Errorf("left is %v, %v", left, err)
	}
}

// Otherwise the API would show a state whose other events the sink has refused.
func TestTheStatusesOfAllJobsOfARefusedEventAreHeldBack(t *testing.T) {
	t.Parallel()
	got := newSeen()
	p := newSinkPublisher(t, "", func(w http.ResponseWriter, r *http.Request) {
		e, err := readEvent(w, r)
		if err != nil || e.Type() == jobevent.TypesCreated {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		got.addItems(unpacked(t, e)...)
	})
	events := someJobs(t, 2)
	for _, e := range slices.Clone(events) {
		events = append(events, ofJob(t, jobevent.TypeStatus, "status "+e.ID(), uuid.MustParse(e.Subject())))
	}
	events = append(events, ofJob(t, jobevent.TypeStatus, "status of another", uuid.New()))
	if err := p.publish(testwait.Within(t, time.Minute), events); err != nil {
		t.Fatal(err)
	}
	if order := got.wait(t, 1); !slices.Equal(order, []string{"status of another"}) {
		t.Errorf("%v were published", order)
	}
}

func TestAnUnpublishableItemDoesNotHoldUpItsEvent(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	answered := p.answered()
	p.send(0, 5)
	p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		events := p.answers(batch)
		for i := range events {
			switch events[i].ID() {
			case "1":
				events[i] = unpublishable(t, "some.other.type", "") // has no topic
			case "3":
				events[i] = unpublishable(t, jobevent.TypeRun, strings.Repeat("x", kafkaevent.MessageLimit+1<<20)) // too large
			}
		}
		return events, nil
	}))
	if order := answered.wait(t, 3); !slices.Equal(order, []string{"0", "2", "4"}) {
		t.Errorf("got %v", order)
	}
}
