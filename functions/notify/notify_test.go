package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/deliverystore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/httpevent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/outbound"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

func TestTheEndOfAJobIsDeliveredAsASignedEvent(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := receive(t, nil)
	h.run(h.function())
	id := h.job(r.URL + "/done?order=17")
	h.report(id, 1, jobstate.Running, 1)
	h.report(id, 2, jobstate.Completed, 1)
	got := r.next()
	e, err := httpevent.Binary(got.header, got.body)
	if err != nil {
		t.Fatal(err)
	}
	if want := jobevent.StatusID(id, 2); e.Type() != jobevent.TypeStatus || e.ID() != want || e.ID() != got.id() ||
		e.Source() != "/jobweaver/notify" || e.Subject() != id.String() || e.DataContentType() != "application/json" {
		t.Errorf("got %v", e)
	}
	if jobevent.TraceIDOf(e) == uuid.Nil || keys(got.header, "Ce-Partition") != nil {
		t.Errorf("got headers %v", got.header)
	}
	var body map[string]any
	if err := json.Unmarshal(got.body, &body); err != nil {
		t.Fatal(err)
	}
	if body["jobId"] != id.String() || body["status"] != "COMPLETED" || body["attempt"] != 1.0 || body["ownerId"] != "acme" ||
		fmt.Sprint(body["tags"]) != "[a ü]" || body["priority"] != 4.0 || body["version"] != 2.0 || body["queue"] != "default" ||
		body["type"] != jobevent.TypeStatus ||
		body["output"].(map[string]any)["n"] != 17.0 || body["jobType"] != "OWN" || body["finishedAt"] == nil {
		t.Errorf("got %s", got.body)
	}
	shown, err := h.store.Jobs.Job(t.Context(), apidb.Everyone, id)
	if err != nil || body["createdAt"] != shown.CreatedAt.UTC().Format(time.RFC3339Nano) {
		t.Errorf("created at %v, not %s: %v", body["createdAt"], shown.CreatedAt, err)
	}
	if bytes.Contains(got.body, []byte("payload")) || bytes.Contains(got.body, []byte("history")) {
		t.Errorf("got %s", got.body)
	}
	d := h.untilStatus(id, deliverystore.Delivered)
	if d.Tries != 1 || *d.LastAnswer != 200 || d.LastError != "" || d.FinishedAt == nil || d.NextAt != nil {
		t.Errorf("got %+v", d)
	}
	r.nothingMore()
}

// The result of a delivery for everything that a receiver may do.
func TestWhatComesOfADelivery(t *testing.T) {
	t.Parallel()
	elsewhere := receive(t, nil)
	hang := func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	reset := func(_ int, w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			err = errors.Join(conn.(*net.TCPConn).SetLinger(0), conn.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}
	after := func(seconds string, code int) func(int, http.ResponseWriter, *http.Request) {
		return func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", seconds)
			w.WriteHeader(code)
		}
	}
	for name, c := range map[string]struct {
		answer func(int, http.ResponseWriter, *http.Request)
		status deliverystore.Status
		tries  int
		code   int    // 0: none
		reason string // in its error
		waits  time.Duration
	}{
		"204": {status(204), deliverystore.Delivered, 1, 204, "", 0},
		"410": {status(410), deliverystore.Failed, 1, 410, "wants no more", 0},
		"404": {status(404), deliverystore.Failed, 4, 404, "answered 404", 0},
		"a redirect": {func(_ int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, deliverystore.Failed, 4, 307, "redirects", 0},
		"a hang":                          {hang, deliverystore.Failed, 4, 0, "in time", 0},
		"a reset":                         {reset, deliverystore.Failed, 4, 0, "reset", 0},
		"429 and a minute":                {after("60", 429), deliverystore.Pending, 1, 429, "answered 429", time.Minute},
		"503 and a minute":                {after("60", 503), deliverystore.Pending, 1, 503, "answered 503", time.Minute},
		"429 and a year":                  {after("31536000", 429), deliverystore.Pending, 1, 429, "answered 429", 24 * time.Hour},
		"500, then 410":                   {func(n int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader([]int{500, 410}[n-1]) }, deliverystore.Failed, 2, 410, "wants no more", 0},
		"500 twice, then 200":             {func(n int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader([]int{500, 500, 200}[n-1]) }, deliverystore.Delivered, 3, 200, "", 0},
		"a huge answer, never read whole": {huge, deliverystore.Delivered, 1, 200, "", 0},
		"a huge header":                   {func(_ int, w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, deliverystore.Failed, 4, 0, "header", 0},
		"an error with more than we show": {func(_ int, w http.ResponseWriter, _ *http.Request) { http.Error(w, "the password is 17", 500) }, deliverystore.Failed, 4, 500, "it answered 500", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			r := receive(t, c.answer)
			f := h.function()
			if name == "a hang" {
				f.tryFor = time.Second // each try takes this long
			}
			h.run(f)
			id := h.ended(r.URL)
			d := h.until(id, "is "+string(c.status), func(d deliverystore.Delivery) bool {
				return d.Status == c.status && d.Tries >= c.tries && (d.LastAnswer != nil || c.code == 0)
			})
			code := 0
			if d.LastAnswer != nil {
				code = *d.LastAnswer
			}
			if d.Tries != c.tries || code != c.code || !strings.Contains(d.LastError, c.reason) ||
				c.reason == "" && d.LastError != "" || strings.Contains(d.LastError, "password") {
				t.Errorf("got %+v, answer %d", d, code)
			}
			if c.waits > 0 {
				if wait := d.NextAt.Sub(*d.LastTryAt); wait < c.waits || wait > c.waits+10*time.Second {
					t.Errorf("it waits %s", wait)
				}
			}
			for range c.tries {
				if got := r.next(); got.id() != jobevent.StatusID(id, 2) {
					t.Errorf("got %s", got.id())
				}
			}
			r.nothingMore()
		})
	}
	t.Cleanup(elsewhere.nothingMore)
}

func huge(_ int, w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			return
		}
	}
}

func TestAnAddressThatIsNotAllowedIsNeverTriedAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	f := h.function()
	var err error
	if f.client, err = outbound.New(outbound.Config{}); err != nil {
		t.Fatal(err)
	}
	h.run(f)
	r := receive(t, nil)
	d := h.untilStatus(h.ended(r.URL), deliverystore.Failed)
	if d.Tries != 1 || !strings.Contains(d.LastError, "not allowed") {
		t.Errorf("got %+v", d)
	}
	r.nothingMore()
}

// The receiver has the event but the function does not know that, so it sends the same event again.
func TestAnAnswerThatComesTooLateIsADeliveryOfTwo(t *testing.T) {
	t.Parallel()
	h := open(t)
	late := make(chan struct{})
	r := receive(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			<-late
		}
		w.WriteHeader(http.StatusOK)
	})
	f := h.function()
	f.tryFor = 2 * time.Second
	h.run(f)
	id := h.ended(r.URL)
	first, second := r.next(), r.next()
	close(late)
	if first.id() != second.id() || !bytes.Equal(first.body, second.body) {
		t.Errorf("got %s, then %s", first.id(), second.id())
	}
	if d := h.untilStatus(id, deliverystore.Delivered); d.Tries != 2 {
		t.Errorf("got %+v", d)
	}
}

func TestOneThatIsKilledBetweenTheAnswerAndItsMarkDeliversTwice(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := receive(t, nil)
	id := h.ended(r.URL)
	rooms := map[deliverystore.Place]int{{Owner: "acme", Host: strings.TrimPrefix(r.URL, "http://")}: 5}
	killed := h.function()
	claimed, err := h.own.Deliveries.Claim(t.Context(), rooms, time.Minute)
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %v, %v", claimed, err)
	}
	if came, err := killed.try(t.Context(), claimed[0]); came.Status != deliverystore.Delivered {
		t.Fatalf("got %+v, %v", came, err)
	}
	first := r.next() // then the process died
	h.run(h.function())
	if again, err := h.own.Deliveries.Claim(t.Context(), rooms, time.Minute); len(again) > 0 {
		t.Errorf("claimed %v during the lease, %v", again, err)
	}
	h.exec("update deliveries set next_at = now()") // the lease is over
	h.exec("notify jobweaver_deliveries")
	if second := r.next(); second.id() != first.id() || !bytes.Equal(second.body, first.body) {
		t.Errorf("got %s, then %s", first.id(), second.id())
	}
	h.untilStatus(id, deliverystore.Delivered)
	// If the process was frozen and not killed, its result comes too late.
	if err := h.own.Deliveries.Settle(t.Context(), claimed[0], deliverystore.Tried{Status: deliverystore.Failed}); err != nil {
		t.Error(err)
	}
	h.untilStatus(id, deliverystore.Delivered)
}

func TestEachEndOfAJobIsDelivered(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := receive(t, nil)
	h.run(h.function())
	id := h.job(r.URL)
	h.report(id, 2, jobstate.Failed, 1)
	if got := r.next(); got.id() != jobevent.StatusID(id, 2) {
		t.Errorf("got %s", got.id())
	}
	h.report(id, 2, jobstate.Failed, 1) // again
	h.report(id, 1, jobstate.Queued, 1) // late
	h.report(id, 3, jobstate.Failed, 1) // a command was refused
	h.report(id, 4, jobstate.Pending, 1)
	h.report(id, 7, jobstate.Completed, 2)
	got := r.next()
	var body struct{ Status string }
	if err := json.Unmarshal(got.body, &body); err != nil || got.id() != jobevent.StatusID(id, 7) || body.Status != "COMPLETED" {
		t.Errorf("got %s %s, %v", got.id(), got.body, err)
	}
	if found := h.deliveries(id); len(found) != 2 || found[0].Version != 7 || found[1].JobStatus != jobstate.Failed {
		t.Errorf("got %+v", found)
	}
	r.nothingMore()
}

func TestTheEndOfADeletedJobIsDeliveredAsItWas(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := receive(t, nil)
	id := h.ended(r.URL)
	if n, err := h.store.Statuses.ForgetJobs(t.Context(), []statusstore.Gone{{JobID: id, Version: 9}}); n != 1 || err != nil {
		t.Fatalf("forgot %d, %v", n, err)
	}
	h.run(h.function())
	if got := r.next(); got.id() != jobevent.StatusID(id, 2) || !bytes.Contains(got.body, []byte(`"n":17`)) {
		t.Errorf("got %s %s", got.id(), got.body)
	}
	h.untilStatus(id, deliverystore.Delivered)
}

func TestWhatWasDeliveredGoesWithItsJob(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := receive(t, nil)
	h.run(h.function())
	id := h.ended(r.URL)
	h.untilStatus(id, deliverystore.Delivered)
	if n, err := h.store.Statuses.ForgetJobs(t.Context(), []statusstore.Gone{{JobID: id, Version: 9}}); n != 1 || err != nil {
		t.Fatalf("forgot %d, %v", n, err)
	}
	if _, err := h.store.Deliveries.OfJob(t.Context(), apidb.Everyone, id, 1); !errors.Is(err, apidb.ErrNoJob) {
		t.Errorf("got %v", err)
	}
}

func TestADeliveryIsMadeAnewByHand(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := receive(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.WriteHeader(http.StatusGone)
		}
	})
	h.run(h.function())
	id := h.ended(r.URL)
	h.untilStatus(id, deliverystore.Failed)
	for range 2 { // one that has failed, and one that was delivered
		if d, err := h.store.Deliveries.Retry(t.Context(), nil, apidb.Everyone, id, 2); err != nil || d.Status != deliverystore.Pending || d.Tries != 0 {
			t.Errorf("got %+v, %v", d, err)
		}
		d := h.untilStatus(id, deliverystore.Delivered)
		if d.Tries != 1 || d.LastError != "" {
			t.Errorf("got %+v", d)
		}
	}
	for range 3 {
		if got := r.next(); got.id() != jobevent.StatusID(id, 2) {
			t.Errorf("got %s", got.id())
		}
	}
	if _, err := h.store.Deliveries.Retry(t.Context(), nil, apidb.Everyone, id, 3); !errors.Is(err, deliverystore.ErrNone) {
		t.Errorf("got %v", err)
	}
}

func TestSeveralSideBySideDeliverEachOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := receive(t, nil)
	const n = 300
	want := make([]string, n)
	for i := range want {
		want[i] = jobevent.StatusID(h.ended(r.URL), 2)
	}
	for range 3 {
		h.run(h.function())
	}
	got := make([]string, n)
	for i := range got {
		got[i] = r.next().id()
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Error("not each came once")
	}
	r.nothingMore()
}

func TestAStopLetsATryEndAndGivesTheOthersBack(t *testing.T) {
	t.Parallel()
	for name, grace := range map[string]time.Duration{"in time": 20 * time.Second, "too late": lastWord} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			answer := make(chan struct{})
			r := receive(t, func(_ int, _ http.ResponseWriter, req *http.Request) {
				select {
				case <-answer:
				case <-req.Context().Done():
				}
			})
			f := h.function()
			f.grace = grace
			stop := h.run(f)
			id := h.ended(r.URL)
			r.next()
			stopped := make(chan struct{})
			go func() { stop(); close(stopped) }()
			if name == "in time" {
				for h.isRunning(f) {
					<-time.After(time.Millisecond)
				}
				close(answer)
			}
			<-stopped
			d := h.deliveries(id)[0]
			if name == "in time" {
				if d.Status != deliverystore.Delivered || d.Tries != 1 {
					t.Errorf("got %+v", d)
				}
				return
			}
			if d.Status != deliverystore.Pending || d.Tries != 0 || d.NextAt.After(time.Now()) {
				t.Errorf("got %+v", d)
			}
			close(answer)
			h.run(h.function())
			h.untilStatus(id, deliverystore.Delivered)
		})
	}
}

func (h *fixture) isRunning(f *Function) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.stopped
}

func TestItIsWokenByTheEndOfAJob(t *testing.T) {
	t.Parallel()
	h := open(t)
	f := h.function()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx, nil) }()
	wake := func() {
		t.Helper()
		select {
		case <-f.wake:
		case <-time.After(20 * time.Second):
			t.Fatal("it was not woken")
		}
	}
	wake() // it listens now
	h.ended("http://127.0.0.1:9/")
	wake()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A laptop has nothing to deliver for hours.
func TestItSleepsUntilSomethingIsDue(t *testing.T) {
	t.Parallel()
	h := open(t)
	f := h.function()
	sleeps := func(atLeast, atMost time.Duration) {
		t.Helper()
		if _, next, err := f.Tick(t.Context()); err != nil || next < atLeast || next > atMost {
			t.Errorf("it sleeps %s, %v", next, err)
		}
	}
	sleeps(idle, idle)
	id := h.ended("http://127.0.0.1:1/")
	for due, longest := range map[string]time.Duration{"5 s": 5 * time.Second, "1 h": idle} {
		h.exec("update deliveries set next_at = now() + $2::interval where job_id = $1", id, due)
		sleeps(longest-4*time.Second, longest)
	}
	h.exec("update deliveries set status = 'DELIVERED', next_at = null, finished_at = now()")
	sleeps(idle, idle)
}

func TestItDoesNotStartWithoutWhatItNeeds(t *testing.T) {
	t.Parallel()
	good := webhook.Config{Secrets: secret.AllOf(newSecret)}
	for name, c := range map[string]struct {
		cfg    Config
		begins string
	}{
		"no secret":       {Config{}, "WEBHOOK_SECRETS: there is none"},
		"no such secret":  {Config{Webhook: webhook.Config{Secrets: secret.AllOf("x")}}, "WEBHOOK_SECRETS: "},
		"no such network": {Config{Webhook: good, Outbound: outbound.Config{Allow: []string{"x"}}}, "OUTBOUND_ALLOW: "},
		"a negative age":  {Config{Webhook: good, Retain: -1}, "RETAIN_DELIVERIES: "},
	} {
		if _, err := New(c.cfg, nil); err == nil || !strings.HasPrefix(err.Error(), c.begins) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestOldDeliveriesAreForgotten(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := receive(t, status(410))
	old, young, pending := h.ended(r.URL), h.ended(r.URL), h.job("http://127.0.0.1:1/")
	f := h.function()
	f.delays = []time.Duration{time.Hour}
	stop := h.run(f)
	h.report(pending, 2, jobstate.Failed, 1)
	h.untilStatus(old, deliverystore.Failed)
	h.untilStatus(young, deliverystore.Failed)
	h.until(pending, "is tried", func(d deliverystore.Delivery) bool { return d.LastError != "" })
	stop()
	h.exec("update deliveries set finished_at = now() - interval '2 h' where job_id = $1", old)
	h.exec("update deliveries set created_at = now() - interval '1 year'")
	f = h.function()
	f.keep = time.Hour
	if _, _, err := f.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(h.deliveries(old)) != 0 || len(h.deliveries(young)) != 1 || len(h.deliveries(pending)) != 1 {
		t.Error("the wrong ones are forgotten")
	}
}
