package funchost

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

func TestPublishingWaitsForAnUnavailableBroker(t *testing.T) {
	t.Parallel()
	port, err := freeport.Pick()
	if err != nil {
		t.Fatal(err)
	}
	cfg := localkafka.Config{Dir: filepath.Join(t.TempDir(), "broker"), Port: port}
	broker, err := localkafka.StartEmbedded(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Stop() }) // stops whichever broker runs at the end
	p := placeOn(t, broker.Brokers())
	answered := p.answered()
	p.send(0, 10)
	inside, release := make(chan struct{}), make(chan struct{})
	var handled atomic.Int32
	p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		for _, e := range batch {
			if e.ID() == "0" && handled.Add(1) == 1 {
				close(inside)
				<-release
			}
		}
		return p.answers(batch), nil
	}))
	await(t, "the batch is handled", inside)
	if err := broker.Stop(); err != nil {
		t.Fatal(err)
	}
	close(release)
	again, err := localkafka.StartEmbedded(cfg)
	if err != nil {
		t.Fatal(err)
	}
	broker = again
	answered.wait(t, 10)
	if n := handled.Load(); n != 1 {
		t.Errorf("the batch was handled %d times", n)
	}
}

func unpublishable(t *testing.T, typ, data string) jobevent.Item {
	t.Helper()
	it, err := jobevent.New(typ, jobevent.Meta{Function: "test", ID: "unpublishable"}, map[string]string{"a": data})
	if err != nil {
		t.Error(err)
	}
	return it
}

func TestUnpublishableItemsDoNotHoldUpOthers(t *testing.T) {
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
	p.send(5, 6)
	answered.wait(t, 4)
}

func TestPublishingNoItemDoesNotEndAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &publisher{
			meter: telemetry.NewMeter("tested"), trouble: telemetry.Trouble{What: "publish"},
			send: func(context.Context, []event.Event) ([]event.Event, error) { return nil, errors.New("away") },
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := p.insist(ctx, []jobevent.Item{{}}); err == nil {
			t.Error("it was published")
		}
		if err := p.insist(t.Context(), nil); err != nil || !p.trouble.Ongoing() {
			t.Errorf("no item: %v, and the failure is over: %t", err, !p.trouble.Ongoing())
		}
	})
}

func TestAPublishedItemNamesTheHandledOne(t *testing.T) {
	t.Parallel()
	jobs := []uuid.UUID{uuid.New(), uuid.New()}
	handled := []jobevent.Item{
		ofJob(t, jobevent.TypeDeadLettered, "a", jobs[0]), ofJob(t, jobevent.TypeCommand, "b", jobs[0]),
	}
	events := []jobevent.Item{
		ofJob(t, jobevent.TypeStatus, "1", jobs[0]),
		ofJob(t, jobevent.TypeStatus, "2", jobs[1]),
		ofJob(t, jobevent.TypeStatus, "3", jobs[0]),
	}
	events[2].SetCause("mine")
	setCausation(events, handled)
	for i, want := range []string{"b", "", "mine"} {
		if got := events[i].Cause(); got != want {
			t.Errorf("event %d was caused by %v, want %v", i, got, want)
		}
	}
}

func TestTheReportOfARejectedRecordFitsIntoARecord(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	rejected := p.rejected()
	p.sendRaw([]byte(strings.Repeat("\x01", kafkaevent.MessageLimit)))
	p.run(p.function(func(context.Context, []jobevent.Item) ([]jobevent.Item, error) { return nil, nil }))
	e, _ := rejected.get(rejected.wait(t, 1)[0])
	data, err := jobevent.Decode[jobevent.Rejected](jobevent.ItemOf(e))
	if err != nil || !data.Truncated || len(data.Value) != maxRejectedValue {
		t.Errorf("truncated %t, %d bytes, %v", data.Truncated, len(data.Value), err)
	}
	if len(e.Data()) >= 1<<20 {
		t.Errorf("the event's data has %d bytes", len(e.Data()))
	}
}
