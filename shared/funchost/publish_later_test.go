package funchost

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/funchost/sink"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// newReceiver returns a host that receives events over HTTP in a bubble with its own time; send receives what it
// publishes.
func newReceiver(
	t *testing.T, handle Handle, send func(context.Context, []event.Event) ([]event.Event, error),
) *host {
	h := newClock(Function{Handle: handle}, nil)
	h.cfg = Config{}.withDefaults()
	h.slots, h.backlog = make(chan struct{}, maxRequests), newBacklog(context.WithoutCancel(t.Context()))
	h.publisher.send = send
	return h
}

// deliver sends an event like a Trigger: it waits 45 s for an answer, and sends the event again after 503 or without an
// answer.
func deliver(h *host, id string) (tries int) {
	for tries = 1; tries <= 11; tries++ {
		ctx, cancel := context.WithTimeout(context.Background(), 45*time.Second)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader("{}"))
		for i, headers := 0, binary(id); i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		h.receive(w, r)
		gone := ctx.Err() != nil
		cancel()
		if w.Code == http.StatusAccepted && !gone {
			return tries
		}
		retry.Pause(context.Background(), time.Second<<tries)
	}
	return tries
}

// slowSink takes 5 to 15 s for each event.
type slowSink struct {
	mu  sync.Mutex
	got map[string]int // by event id
}

func (s *slowSink) send(ctx context.Context, events []event.Event) (sent []event.Event, err error) {
	var all sync.WaitGroup
	for _, e := range events {
		all.Go(func() {
			retry.Pause(context.Background(), 5*time.Second+rand.N(10*time.Second))
			s.mu.Lock()
			defer s.mu.Unlock()
			s.got[e.ID()]++
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, &sink.Unsent{Events: events, Err: ctx.Err()}
	}
	return events, nil
}

// If the answer waited for a slow sink, the client would send its event again, and all events that follow would be
// published again: the sink would multiply its own load.
func TestASlowSinkReceivesEachEventOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sink := slowSink{got: map[string]int{}}
		var handled atomic.Int32
		h := newReceiver(t, func(_ context.Context, batch []jobevent.Item) (events []jobevent.Item, err error) {
			handled.Add(int32(len(batch)))
			for _, item := range batch {
				job := uuid.NewSHA1(uuid.Nil, []byte(item.ID()))
				events = append(events, ofJob(t, jobevent.TypeDeadLettered, job.String()+".1.run", job),
					ofJob(t, jobevent.TypeStatus, job.String()+".v1", job))
			}
			return events, nil
		}, sink.send)
		const jobs = 200
		var all sync.WaitGroup
		for n := range jobs {
			all.Go(func() {
				if tries := deliver(h, strconv.Itoa(n)); tries > 11 {
					t.Error("it was never taken")
				}
			})
		}
		all.Wait()
		h.backlog.under.Wait()
		if handled.Load() != jobs || len(sink.got) != 2*jobs {
			t.Errorf("handled %d events, and the sink got %d", handled.Load(), len(sink.got))
		}
		for id, times := range sink.got {
			if times > 1 {
				t.Errorf("the sink got %s %d times", id, times)
			}
		}
	})
}

// The store has the event, and the sweepers republish what the sink did not accept: the client need not send it again.
func TestAnEventIsAnsweredWhileTheSinkIsUnavailable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		handled := 0
		h := newReceiver(t, func(context.Context, []jobevent.Item) ([]jobevent.Item, error) {
			handled++
			return []jobevent.Item{ofJob(t, jobevent.TypeStatus, "1", uuid.New())}, nil
		}, func(_ context.Context, events []event.Event) ([]event.Event, error) {
			return nil, &sink.Unsent{Events: events, Err: errors.New("away")}
		})
		began := time.Now()
		if tries := deliver(h, "1"); tries != 1 || handled != 1 {
			t.Errorf("brought %d times, handled %d times", tries, handled)
		}
		if took := time.Since(began); took != PublishPatience {
			t.Errorf("answered after %s", took)
		}
		h.backlog.under.Wait()
		if took := time.Since(began); took < backlogFor || took > 2*backlogFor {
			t.Errorf("gave up after %s", took)
		}
	})
}

// The events that are published after their answer are bounded: the rest is left to the sweepers at once.
func TestTheBacklogIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		under := 0
		var mu sync.Mutex
		h := newReceiver(t, func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
			e, err := jobevent.New(jobevent.TypeStatus, jobevent.Meta{ID: "follows from " + batch[0].ID(), JobID: uuid.New()},
				strings.Repeat("x", 1<<20))
			return []jobevent.Item{e}, err
		}, func(ctx context.Context, events []event.Event) ([]event.Event, error) {
			mu.Lock()
			under++
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			under--
			mu.Unlock()
			return nil, &sink.Unsent{Events: events, Err: ctx.Err()}
		})
		var all sync.WaitGroup
		for n := range maxRequests {
			all.Go(func() { deliver(h, strconv.Itoa(n)) })
		}
		all.Wait()
		synctest.Wait()
		mu.Lock()
		if most := backlogBytes >> 20; under == 0 || under > most {
			t.Errorf("%d publications of 1 MiB go on", under)
		}
		mu.Unlock()
		h.backlog.under.Wait()
	})
}

// A stop waits for background publishing, but not for its whole minute.
func TestAStopEndsTheBacklogInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newReceiver(t, func(context.Context, []jobevent.Item) ([]jobevent.Item, error) {
			return []jobevent.Item{ofJob(t, jobevent.TypeStatus, "1", uuid.New())}, nil
		}, func(_ context.Context, events []event.Event) ([]event.Event, error) {
			return nil, &sink.Unsent{Events: events, Err: errors.New("away")}
		})
		deliver(h, "1")
		began := time.Now()
		if h.backlog.finish(10 * time.Second); time.Since(began) != 10*time.Second {
			t.Errorf("waited %s", time.Since(began))
		}
	})
}

// If all slots are taken, the client gets an answer before it gives up: its request has had no effect yet.
func TestARequestWithoutASlotIsAnsweredBeforeItsClientGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newReceiver(t, nil, nil)
		for range maxRequests {
			h.slots <- struct{}{}
		}
		began, w := time.Now(), httptest.NewRecorder()
		h.receive(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("{}")))
		if took := time.Since(began); w.Code != http.StatusServiceUnavailable || took != PublishPatience {
			t.Errorf("answered %d after %s", w.Code, took)
		}
	})
}

// The sink may have received the event of an aborted request: publishing it again would double the load.
func TestARequestToTheSinkOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	came, release, taken := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	p := newSinkPublisher(t, "", func(_ http.ResponseWriter, r *http.Request) {
		close(came)
		<-release
		taken <- r.Context().Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	published := make(chan error, 1)
	go func() {
		published <- p.publish(ctx, []jobevent.Item{ofJob(t, jobevent.TypeDeadLettered, "0", uuid.New())})
	}()
	await(t, "the request", came)
	cancel()
	if err := await(t, "the end of publishing", published); !errors.Is(err, context.Canceled) {
		t.Errorf("published: %v", err)
	}
	close(release)
	if err := await(t, "the end of the request", taken); err != nil {
		t.Errorf("the request was broken off: %v", err)
	}
}

// If the status were published after a refused dead letter, the API would not request a report, and the dead letter
// would be lost.
func TestAStatusIsHeldBackBehindARefusedDeadLetter(t *testing.T) {
	t.Parallel()
	for _, refusal := range []int{301, 401, 403, 413} {
		t.Run(http.StatusText(refusal), func(t *testing.T) {
			t.Parallel()
			refused, fine := uuid.New(), uuid.New()
			var events []jobevent.Item
			for _, job := range []uuid.UUID{refused, fine} {
				events = append(events,
					ofJob(t, jobevent.TypeStatus, job.String()+".v2", job),
					ofJob(t, jobevent.TypeDeadLettered, job.String()+".1.dead", job))
			}
			var mu sync.Mutex
			away, allowed := true, false
			var taken []string
			p := newSinkPublisher(t, "", func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				switch id := r.Header.Get("Ce-Id"); {
				case id == fine.String()+".1.dead" && away:
					away = false
					w.WriteHeader(http.StatusInternalServerError) // so that the rest is retried
				case id == refused.String()+".1.dead" && !allowed:
					w.WriteHeader(refusal)
				default:
					taken = append(taken, id)
				}
			})
			if err := p.insist(testwait.Within(t, time.Minute), events); err != nil {
				t.Fatal(err)
			}
			if len(taken) != 3 || taken[1] != fine.String()+".v2" || !strings.HasPrefix(taken[2], taken[1]+"+") {
				t.Errorf("the sink took %v", taken)
			}
			allowed, taken = true, nil
			if err := p.insist(testwait.Within(t, time.Minute), events[:2]); err != nil { // as the answer to the API's report
				t.Fatal(err)
			}
			if len(taken) != 3 || taken[1] != refused.String()+".v2" || !strings.HasPrefix(taken[2], taken[1]+"+") {
				t.Errorf("put right, the sink took %v", taken)
			}
		})
	}
}

func TestUnpublishedReturnsTheItemsThatTheSinkDidNotAccept(t *testing.T) {
	t.Parallel()
	p := &publisher{
		meter: telemetry.NewMeter("tested"), trouble: telemetry.Trouble{What: "publish"},
		send: func(_ context.Context, events []event.Event) ([]event.Event, error) {
			return events[:1], &sink.Unsent{Events: events[1:], Err: errors.New("away")}
		},
	}
	events := []jobevent.Item{
		ofJob(t, jobevent.TypeDeadLettered, "0", uuid.New()), ofJob(t, jobevent.TypeDeadLettered, "1", uuid.New()),
	}
	left := unpublished(events, p.publish(t.Context(), events))
	if len(left) != 1 || left[0].ID() != "1" {
		t.Errorf("left: %v", left)
	}
}
