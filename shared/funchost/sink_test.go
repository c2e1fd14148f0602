package funchost

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/funchost/sink"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// newSinkPublisher publishes events to a server with the given handler.
func newSinkPublisher(t *testing.T, overrides string, answer http.HandlerFunc) *publisher {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	p, err := newPublisher(Config{Sink: server.URL, CEOverrides: overrides}, telemetry.NewMeter(t.Name()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

func ofJob(t *testing.T, typ, id string, jobID uuid.UUID) jobevent.Item {
	t.Helper()
	return itemOf(t, typ, id, jobID, struct{}{})
}

func itemOf(t *testing.T, typ, id string, jobID uuid.UUID, data any) jobevent.Item {
	t.Helper()
	e, err := jobevent.New(typ, jobevent.Meta{Function: "test", ID: id, JobID: jobID}, data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestTheSinkReceivesEachEventOnceInBinaryMode(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	got := map[string]event.Event{}
	p := newSinkPublisher(t, `{"extensions":{"cluster":"blue"}}`, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Ce-Id") == "" {
			t.Error("not in binary mode")
		}
		e, err := readEvent(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if _, twice := got[e.ID()]; twice {
			t.Errorf("%s came twice", e.ID())
		}
		got[e.ID()] = e
	})
	var events []jobevent.Item
	for _, id := range numbers(0, 200) {
		e := ofJob(t, jobevent.TypeDeadLettered, id, uuid.New()).Event()
		e.SetExtension("note", `50 % "ü"`)
		events = append(events, jobevent.ItemOf(e))
	}
	if err := p.publish(testwait.Within(t, time.Minute), events); err != nil {
		t.Fatal(err)
	}
	if len(got) != 200 {
		t.Fatalf("the sink got %d events", len(got))
	}
	e := got["7"]
	if e.Extensions()["note"] != `50 % "ü"` || e.Extensions()["cluster"] != "blue" {
		t.Errorf("extensions arrived as %v", e.Extensions())
	}
	if e.Subject() != events[7].Subject() || string(e.Data()) != "{}" || e.DataContentType() != event.ApplicationJSON {
		t.Errorf("arrived as %s", e)
	}
}

func TestADeletedJobIsPublishedWithoutABody(t *testing.T) {
	t.Parallel()
	job := uuid.New()
	e, err := jobevent.NewDeleted(jobevent.Meta{Function: "command", JobID: job}, 12)
	if err != nil {
		t.Fatal(err)
	}
	came := false
	p := newSinkPublisher(t, "", func(w http.ResponseWriter, r *http.Request) {
		got, err := readEvent(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		if got.Type() == jobevent.TypesStatus { // for projection
			return
		}
		came = true
		version, err := jobevent.DeletedVersion(jobevent.ItemOf(got))
		if r.ContentLength != 0 || version != 12 || err != nil || got.String() != e.Event().String() {
			t.Errorf("%d bytes arrived as %s, %v", r.ContentLength, got, err)
		}
	})
	if err := p.publish(testwait.Within(t, time.Minute), []jobevent.Item{e}); err != nil || !came {
		t.Error("did not arrive: ", err)
	}
}

func TestTemporaryFailuresOfTheSinkAreRetried(t *testing.T) {
	t.Parallel()
	for _, status := range []int{404, 408, 409, 429, 500, 502, 503} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int32
			p := newSinkPublisher(t, "", func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Ce-Id") == "1" && tries.Add(1) <= 2 {
					w.WriteHeader(status)
				}
			})
			events := []jobevent.Item{
				ofJob(t, jobevent.TypeDeadLettered, "0", uuid.New()), ofJob(t, jobevent.TypeDeadLettered, "1", uuid.New()),
			}
			if err := p.insist(testwait.Within(t, time.Minute), events); err != nil {
				t.Fatal(err)
			}
			if n := tries.Load(); n != 3 {
				t.Errorf("tried %d times", n)
			}
		})
	}
}

// A caller that publishes once, and leaves failures to a sweeper, would lose ten seconds to each temporary 503.
func TestOnePublicationOutlastsAShortOutageOfTheSink(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	p := newSinkPublisher(t, "", func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	created := []jobevent.Item{ofJob(t, jobevent.TypeDeadLettered, "0", uuid.New())}
	if err := p.publish(testwait.Within(t, time.Minute), created); err != nil {
		t.Errorf("published nothing after %d requests: %v", requests.Load(), err)
	}
	requests.Store(0)
	if err := p.publish(nearItsEnd{t.Context()}, created); err == nil || requests.Load() != 1 {
		t.Errorf("without time for another one: %d requests, %v", requests.Load(), err)
	}
}

// nearItsEnd is a context whose deadline is always nearer than the end of the first pause, but which never ends.
type nearItsEnd struct{ context.Context }

func (nearItsEnd) Deadline() (time.Time, bool) { return time.Now().Add(firstRetry / 4), true }

func TestTheSinkSetsThePause(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	var first time.Time
	p := newSinkPublisher(t, "", func(w http.ResponseWriter, _ *http.Request) {
		if tries.Add(1) == 1 {
			first = time.Now()
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	if err := p.insist(testwait.Within(t, time.Minute), []jobevent.Item{ofJob(t, jobevent.TypeDeadLettered, "0", uuid.New())}); err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(first); waited < time.Second {
		t.Errorf("waited only %s", waited)
	}
}

func TestARefusalOfTheSinkIsFinal(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 400, 401, 403, 413, 415, 422} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int32
			p := newSinkPublisher(t, "", func(w http.ResponseWriter, _ *http.Request) {
				tries.Add(1)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
			})
			if err := p.publish(t.Context(), []jobevent.Item{ofJob(t, jobevent.TypeDeadLettered, "0", uuid.New())}); err != nil {
				t.Fatal(err)
			}
			if n := tries.Load(); n != 1 {
				t.Errorf("tried %d times", n)
			}
		})
	}
}

func TestAnUnavailableSinkIsNotTriedForEachEvent(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	p := newSinkPublisher(t, "", func(w http.ResponseWriter, _ *http.Request) {
		tries.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	var events []jobevent.Item
	for _, id := range numbers(0, 1000) {
		events = append(events, ofJob(t, jobevent.TypeDeadLettered, id, uuid.New()))
	}
	err := p.publish(testwait.Within(t, time.Minute), events)
	left := (*unsent)(nil)
	if !errors.As(err, &left) || len(left.items) != 1000 {
		t.Fatalf("publish returned %v", err)
	}
	if n := tries.Load(); n > 2*sink.MaxTries*sink.MaxRequests {
		t.Errorf("asked %d times", n)
	}
}

func TestAJobsStatusIsPublishedAfterItsOtherEvents(t *testing.T) {
	t.Parallel()
	jobs := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	var events []jobevent.Item
	for _, job := range jobs {
		events = append(events, ofJob(t, jobevent.TypeStatus, job.String()+".v1", job))
	}
	for _, job := range jobs[:2] {
		events = append(events, ofJob(t, jobevent.TypeDeadLettered, job.String()+".dead", job))
	}
	var mu sync.Mutex
	var acknowledged []string
	var failed bool
	p := newSinkPublisher(t, "", func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("Ce-Id")
		mu.Lock()
		defer mu.Unlock()
		if !failed && strings.HasSuffix(id, ".dead") {
			failed = true
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		acknowledged = append(acknowledged, id)
	})
	if err := p.insist(testwait.Within(t, time.Minute), events); err != nil {
		t.Fatal(err)
	}
	public := slices.DeleteFunc(slices.Clone(acknowledged), func(id string) bool { return strings.Contains(id, "+") })
	if len(public) != len(events) {
		t.Errorf("got %v", acknowledged)
	}
	for _, job := range jobs[:2] {
		status := slices.Index(acknowledged, job.String()+".v1")
		if dead := slices.Index(acknowledged, job.String()+".dead"); dead > status {
			t.Errorf("the status of %s was published before its dead letter: %v", job, acknowledged)
		}
	}
}

func TestPublishingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var requests atomic.Int32
	p := newSinkPublisher(t, "", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		if requests.Add(1) > sink.MaxTries { // the first call has failed
			cancel()
		}
	})
	if err := p.insist(ctx, []jobevent.Item{ofJob(t, jobevent.TypeDeadLettered, "0", uuid.New())}); err == nil {
		t.Error("publish succeeded")
	}
	if !p.trouble.Ongoing() {
		t.Error("the trouble was not noted")
	}
}
