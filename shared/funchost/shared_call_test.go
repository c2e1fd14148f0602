package funchost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// busy is a host whose calls of Handle wait until they are released, with as many calls under way as there may be.
type busy struct {
	*host
	mu        sync.Mutex
	batches   [][]string // the ids of each call, sorted
	published []string
	release   chan struct{}
	all       sync.WaitGroup
	answers   map[string]int // statuses by event id
}

// beBusy hosts a function that answers err for a batch, and publishes an item for each event.
func beBusy(t *testing.T, errOf func(ids []string) error) *busy {
	b := &busy{release: make(chan struct{}), answers: map[string]int{}}
	b.host = newReceiver(t, func(ctx context.Context, batch []jobevent.Item) (items []jobevent.Item, err error) {
		ids := make([]string, len(batch))
		for i, item := range batch {
			ids[i] = item.ID()
			items = append(items, ofJob(t, jobevent.TypeStatus, "follows "+item.ID(), uuid.New()))
		}
		slices.Sort(ids)
		b.mu.Lock()
		b.batches = append(b.batches, ids)
		b.mu.Unlock()
		select {
		case <-b.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if err := errOf(ids); err != nil {
			return nil, err
		}
		return items, nil
	}, func(_ context.Context, events []event.Event) ([]event.Event, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, e := range events {
			b.published = append(b.published, e.ID())
		}
		return events, nil
	})
	for i := range maxCalls {
		b.post(t.Context(), "first "+strconv.Itoa(i))
		synctest.Wait()
	}
	return b
}

// post sends an event, and notes the answer.
func (b *busy) post(ctx context.Context, id string) {
	b.all.Go(func() {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader("{}"))
		for i, headers := 0, binary(id); i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		b.receive(w, r)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.answers[id] = w.Code
	})
}

// end releases the calls, and waits for all answers. It returns the calls after the first ones.
func (b *busy) end() [][]string {
	synctest.Wait()
	close(b.release)
	b.all.Wait()
	synctest.Wait()
	return b.batches[maxCalls:]
}

func TestRequestsThatWaitShareACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := beBusy(t, func([]string) error { return nil })
		waiting := []string{"a", "b", "c", "d"}
		for _, id := range waiting {
			b.post(t.Context(), id)
		}
		if calls := b.end(); len(calls) != 1 || !slices.Equal(calls[0], waiting) {
			t.Errorf("the calls are %q", calls)
		}
		for id, status := range b.answers {
			if status != http.StatusAccepted || !slices.Contains(b.published, "follows "+id) {
				t.Errorf("%s was answered %d; published: %q", id, status, b.published)
			}
		}
		b.post(t.Context(), "later")
		b.all.Wait()
		if b.answers["later"] != http.StatusAccepted || b.shared.underWay != 0 {
			t.Errorf("a later request was answered %d, and %d calls are still under way", b.answers["later"], b.shared.underWay)
		}
	})
}

func TestASharedCallHasABound(t *testing.T) {
	t.Parallel()
	var s sharedCalls
	for range maxCalls {
		if !s.enter(&sharer{}) {
			t.Fatal("a call has to wait")
		}
	}
	sizes := []int{600, 300, 200, 2 * maxBatch, 1}
	waiting := make([]*sharer, len(sizes))
	for i, n := range sizes {
		waiting[i] = &sharer{items: make([]jobevent.Item, n), next: make(chan turn, 1)}
		if s.enter(waiting[i]) {
			t.Fatal("a call does not wait")
		}
	}
	for _, call := range [][]*sharer{waiting[:2], waiting[2:3], waiting[3:4], waiting[4:]} {
		s.leave()
		if got := <-call[0].next; !slices.Equal(got.call, call) {
			t.Errorf("a call has %d requests, want %d", len(got.call), len(call))
		}
	}
}

func TestARequestDoesNotFailBecauseOfAnother(t *testing.T) {
	t.Parallel()
	for name, errOf := range map[string]func() error{
		"invalid": func() error { return fmt.Errorf("no: %w", jobevent.ErrInvalid) },
		"panic":   func() error { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := beBusy(t, func(ids []string) error {
					if slices.Contains(ids, "bad") {
						return errOf()
					}
					return nil
				})
				for _, id := range []string{"a", "bad", "c"} {
					b.post(t.Context(), id)
				}
				b.end()
				for id, status := range b.answers {
					if want := map[bool]int{true: http.StatusBadRequest, false: http.StatusAccepted}[id == "bad"]; status != want {
						t.Errorf("%s was answered %d", id, status)
					}
					if id != "bad" && !slices.Contains(b.published, "follows "+id) {
						t.Errorf("published: %q", b.published)
					}
				}
			})
		})
	}
}

func TestATemporaryFailureOfASharedCallIsThatOfEachRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := beBusy(t, func(ids []string) error {
			if len(ids) > 1 {
				return errors.New("the store is away")
			}
			return nil
		})
		b.post(t.Context(), "a")
		b.post(t.Context(), "b")
		if calls := b.end(); len(calls) != 1 {
			t.Errorf("the calls are %q", calls)
		}
		for _, id := range []string{"a", "b"} {
			if b.answers[id] != http.StatusServiceUnavailable {
				t.Errorf("%s was answered %d", id, b.answers[id])
			}
		}
	})
}

func TestASharedCallGoesOnIfAClientHasGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := beBusy(t, func([]string) error { return nil })
		ctx, leave := context.WithCancel(t.Context())
		b.post(ctx, "a")
		synctest.Wait()
		b.post(t.Context(), "b")
		synctest.Wait()
		leave()
		if calls := b.end(); len(calls) != 1 || !slices.Equal(calls[0], []string{"a", "b"}) || b.answers["b"] != http.StatusAccepted {
			t.Errorf("the calls are %q, the answers %v", calls, b.answers)
		}
	})
}
