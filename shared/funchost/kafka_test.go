package funchost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func TestABatchIsAcknowledgedAfterItsEventsArePublished(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.send(0, 100)
	answered := p.answered()
	stop := p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		return p.answers(batch), nil
	}))
	if order := answered.wait(t, 100); !slices.Equal(order, numbers(0, 100)) {
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
	p.send(100, 101)
	if order := again.wait(t, 1); order[0] != "100" {
		t.Errorf("acknowledged events were delivered again: %v", order)
	}
}

func TestUnreadableRecordsAreRejectedAndTheOthersHandled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	answered, rejected := p.answered(), p.rejected()
	p.send(0, 3)
	p.sendRaw([]byte("garbage"), sarama.RecordHeader{Key: []byte("who"), Value: []byte("stranger")})
	p.send(3, 4)
	p.sendRaw(nil)
	p.sendRaw([]byte(`{"specversion":"1.0","id":`),
		sarama.RecordHeader{Key: []byte("content-type"), Value: []byte("application/cloudevents+json")})
	p.send(4, 6)
	p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		return p.answers(batch), nil
	}))

	if order := answered.wait(t, 6); !slices.Equal(order, numbers(0, 6)) {
		t.Errorf("answers came as %v", order)
	}
	ids := rejected.wait(t, 3)
	e, _ := rejected.get(ids[0])
	data, err := jobevent.Decode[jobevent.Rejected](jobevent.ItemOf(e))
	if err != nil {
		t.Fatal(err)
	}
	if data.Offset != 3 || string(data.Value) != "garbage" || data.Headers["who"] != "stranger" || data.Reason == "" {
		t.Errorf("rejected as %+v", data)
	}
	if want := fmt.Sprintf("%s/%d/3.rejected", data.Topic, data.Partition); e.ID() != want {
		t.Errorf("id is %s, want %s", e.ID(), want)
	}
}

func TestAnInvalidEventAloneIsRejected(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		fail func() error
	}{
		{"refused", func() error { return fmt.Errorf("store: %w", jobevent.ErrInvalid) }},
		{"panics", func() error { panic("no") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			answered, rejected := p.answered(), p.rejected()
			p.send(0, 20)
			p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
				for _, e := range batch {
					if e.ID() == "7" {
						return nil, tt.fail()
					}
				}
				return p.answers(batch), nil
			}))
			want := append(numbers(0, 7), numbers(8, 20)...)
			if order := answered.wait(t, 19); !slices.Equal(order, want) {
				t.Errorf("answers came as %v", order)
			}
			e, _ := rejected.get(rejected.wait(t, 1)[0])
			if data, err := jobevent.Decode[jobevent.Rejected](jobevent.ItemOf(e)); err != nil || data.Offset != 7 {
				t.Errorf("rejected %+v, %v", data, err)
			}
		})
	}
}

func TestABatchBeyondTheDatabasesTimeLimitsIsHalved(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{"statement_timeout": "57014", "transaction_timeout": "25P04"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			answered := p.answered()
			p.send(0, 20)
			halved := make(chan struct{})
			tooMany := sync.OnceFunc(func() { close(halved) })
			p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
				if len(batch) > 3 {
					tooMany()
					return nil, fmt.Errorf("store: %w", &pgconn.PgError{Code: code})
				}
				return p.answers(batch), nil
			}))
			if order := answered.wait(t, 20); !slices.Equal(order, numbers(0, 20)) {
				t.Errorf("answers came as %v", order)
			}
			<-halved
		})
	}
}

func TestHandlingWaitsForAnUnavailableStore(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	answered, rejected := p.answered(), p.rejected()
	p.send(0, 10)
	var tries atomic.Int32
	p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		if tries.Add(1) < 4 {
			return nil, errors.New("connection refused")
		}
		return p.answers(batch), nil
	}))
	if order := answered.wait(t, 10); !slices.Equal(order, numbers(0, 10)) {
		t.Errorf("answers came as %v", order)
	}
	p.sendRaw([]byte("garbage")) // a record that was wrongly rejected would come before it
	if ids := rejected.wait(t, 1); len(ids) != 1 {
		t.Errorf("rejected %v", ids)
	}
}

func TestAStopFinishesTheBatchInFlight(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	answered := p.answered()
	p.send(0, 1)
	inside, release := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopped := make(chan error, 1)
	go func() {
		stopped <- Run(ctx, p.cfg, p.function(func(ctx context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
			close(inside)
			<-release
			return p.answers(batch), ctx.Err()
		}))
	}()
	await(t, "the batch is handled", inside)
	cancel()
	p.send(1, 2)
	close(release)
	if err := await(t, "Run returns", stopped); err != nil {
		t.Fatal(err)
	}
	answered.wait(t, 1)

	rest := newSeen()
	p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		rest.addItems(batch...)
		return nil, nil
	}))
	if order := rest.wait(t, 1); order[0] != "1" {
		t.Errorf("the finished batch was delivered again: %v", order)
	}
}

func TestABatchThatOutlastsTheGracePeriodIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.cfg.ShutdownGrace = 50 * time.Millisecond
	answered := p.answered()
	p.send(0, 3)
	inside := make(chan struct{}, 1)
	stop := p.run(p.function(func(ctx context.Context, _ []jobevent.Item) ([]jobevent.Item, error) {
		select {
		case inside <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	await(t, "the batch is handled", inside)
	if err := stop(); !errors.Is(err, errLate) {
		t.Fatalf("Run returned %v", err)
	}
	p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		return p.answers(batch), nil
	}))
	if order := answered.wait(t, 3); !slices.Equal(order, numbers(0, 3)) {
		t.Errorf("answers came as %v", order)
	}
}
