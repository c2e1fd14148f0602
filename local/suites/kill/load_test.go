package kill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// order is a submitted job.
type order struct {
	key       string
	shape     *shape
	how       string // the way in which it was submitted
	body      json.RawMessage
	keyed     bool // so that it could be submitted again until it was accepted
	delivered bool // its end is delivered to outside

	asked    time.Time
	id       string // empty: unanswered, though it may have been accepted
	accepted time.Time

	mu         sync.Mutex
	calledBack []int // attempts whose callback got its 200
	commands   []given
	cancelled  time.Time // when the API was first seen to show CANCELLED
}

// given is a command that got its 202.
type given struct {
	command string
	number  int
	at      time.Time
}

// load submits jobs over HTTP and keeps what it submitted.
type load struct {
	fixture *fixture
	shapes  []*shape
	rnd     func() *rand.Rand
	slower  time.Duration // by this factor run pauses longer; 0: 1

	mu     sync.Mutex
	orders []*order
	seen   map[string]int // answers and failures, by kind
	number int

	operations []operation
	batches    []batchMade
	flows      []*flowMade
	merging    []*merging
	drained    []drained
	paused     time.Time // when the schedule was paused

	submitting, following sync.WaitGroup
	follow                context.Context // for goroutines that send commands and wait for ends
}

const patience = 8 * time.Second // for one request

func newLoad(follow context.Context, h *fixture, rnd *rand.Rand) *load {
	var mu sync.Mutex
	list := shapes
	if h.plan.pollers > 0 {
		list = slices.Concat(shapes, waitingShapes)
	}
	return &load{fixture: h, shapes: list, seen: map[string]int{}, follow: follow, rnd: func() *rand.Rand {
		mu.Lock()
		defer mu.Unlock()
		return rand.New(rand.NewPCG(rnd.Uint64(), 0))
	}}
}

// run submits in every way until ctx ends, about forty jobs a second divided by slower.
func (l *load) run(ctx context.Context) {
	for range 4 {
		l.submitting.Go(func() { l.every(ctx, 200*time.Millisecond, l.submitOne) })
	}
	l.submitting.Go(func() { l.every(ctx, time.Second, l.submitBatch) })
	l.submitting.Go(func() { l.every(ctx, 400*time.Millisecond, l.submitEvent) })
	l.submitting.Go(func() { l.every(ctx, time.Second, l.submitEvents) })
}

func (l *load) every(ctx context.Context, pace time.Duration, submit func(context.Context, *rand.Rand)) {
	rnd := l.rnd()
	for retry.Pause(ctx, max(l.slower, 1)*(pace/2+rand.N(pace))) {
		submit(ctx, rnd)
	}
}

// name returns a new name of a batch, flow or queue.
func (l *load) name(begin string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	return fmt.Sprint(begin, l.number)
}

func (l *load) newOrder(rnd *rand.Rand, s *shape, how string, keyed bool) *order {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	o := &order{
		key: fmt.Sprintf("k%d", l.number), shape: s, how: how, keyed: keyed, delivered: rnd.IntN(3) == 0, asked: time.Now(),
	}
	o.body = s.body(rnd, o.key, keyed && how != "event", o.delivered, l.fixture.outside.server.URL)
	l.orders = append(l.orders, o)
	l.expectWaits(rnd, o)
	return o
}

func (l *load) submitOne(ctx context.Context, rnd *rand.Rand) {
	l.submit(ctx, l.newOrder(rnd, anyOf(l.shapes, rnd), "single", rnd.IntN(4) > 0))
}

func (l *load) submit(ctx context.Context, o *order) {
	var answer client.Accepted
	l.ask(ctx, o.keyed, "/api/jobs", "application/json", o.body, &answer)
	l.accept(o, answer.JobID)
}

func (l *load) submitBatch(ctx context.Context, rnd *rand.Rand) {
	var orders []*order
	for range 1 + rnd.IntN(20) {
		orders = append(orders, l.newOrder(rnd, anyOf(l.shapes, rnd), "batch", true))
	}
	l.submitAll(ctx, orders)
}

func (l *load) submitAll(ctx context.Context, orders []*order) {
	var bodies []json.RawMessage
	for _, o := range orders {
		bodies = append(bodies, o.body)
	}
	body, err := json.Marshal(map[string]any{"jobs": bodies})
	if err != nil {
		panic(err) // it is JSON
	}
	var answer struct {
		Results []struct {
			Status int
			JobID  string
			Error  json.RawMessage
		}
	}
	if !l.ask(ctx, true, "/api/jobs/batch", "application/json", body, &answer) {
		return
	}
	for i, result := range answer.Results {
		if result.Status != http.StatusAccepted && result.Status != http.StatusOK {
			l.fixture.complain("job %s in a batch: %d %s", orders[i].key, result.Status, result.Error)
		}
		l.accept(orders[i], result.JobID)
	}
}

func (l *load) submitEvent(ctx context.Context, rnd *rand.Rand) {
	o := l.newOrder(rnd, anyOf(l.shapes, rnd), "event", true)
	var answer client.Accepted
	if rnd.IntN(2) == 0 {
		l.ask(ctx, true, "/events", "application/cloudevents+json", structured(o), &answer)
	} else {
		l.ask(ctx, true, "/events", "application/json", o.body, &answer, "ce-specversion", "1.0",
			"ce-id", o.key, "ce-source", eventSource, "ce-type", jobevent.TypeSubmit)
	}
	l.accept(o, answer.JobID)
}

const eventSource = "/killtest"

func structured(o *order) []byte {
	return fmt.Appendf(nil, `{"specversion":"1.0","id":%q,"source":%q,"type":%q,"datacontenttype":"application/json","data":%s}`,
		o.key, eventSource, jobevent.TypeSubmit, o.body)
}

func (l *load) submitEvents(ctx context.Context, rnd *rand.Rand) {
	orders := map[string]*order{}
	var list []string
	for range 1 + rnd.IntN(5) {
		o := l.newOrder(rnd, anyOf(l.shapes, rnd), "event", true)
		orders[o.key], list = o, append(list, string(structured(o)))
	}
	var answer struct{ Jobs []struct{ ID, JobID string } }
	body := []byte("[" + strings.Join(list, ",") + "]")
	l.ask(ctx, true, "/events", "application/cloudevents-batch+json", body, &answer)
	for _, job := range answer.Jobs {
		l.accept(orders[job.ID], job.JobID)
	}
}

// ask posts until there is an answer. A request that must not be repeated is posted once.
func (l *load) ask(
	ctx context.Context, again bool, path, contentType string, body []byte, out any, headers ...string,
) bool {
	for {
		// A request under way runs to its end, since otherwise its result would be unknown.
		tryCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		_, err := l.fixture.api.Do(tryCtx, http.MethodPost, path, contentType, body, out, headers...)
		cancel()
		l.note(err)
		if err == nil {
			return true
		}
		if wrong(err) {
			l.fixture.complain("POST %s: %v", path, err)
			return false
		}
		// Without a key not even a 503 may be repeated: PostgreSQL may have died just after a commit.
		if !again || !retry.Pause(ctx, 200*time.Millisecond) {
			return false
		}
	}
}

// wrong reports whether a valid request must not get this answer.
func wrong(err error) bool {
	var answer *client.Error
	return errors.As(err, &answer) && answer.Status != http.StatusServiceUnavailable
}

// refused reports whether the gateway could not reach its store.
func refused(err error) bool {
	var answer *client.Error
	return errors.As(err, &answer) && answer.Status == http.StatusServiceUnavailable
}

func (l *load) note(err error) {
	what := "answered"
	if refused(err) {
		what = "answered 503"
	} else if err != nil {
		what = "gateway away"
	}
	l.count(what)
}

func (l *load) count(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[what]++
}

// accept records the id with which a job was accepted, and starts its commands.
func (l *load) accept(o *order, id string) {
	if id == "" {
		return
	}
	o.mu.Lock()
	o.id, o.accepted = id, time.Now()
	o.mu.Unlock()
	if o.shape.cancelIn > 0 {
		l.following.Go(func() { l.cancel(o) })
	}
	if o.shape.callBack {
		l.following.Go(func() { l.callBack(o) })
	}
	if o.shape.redrive {
		l.following.Go(func() { l.redrive(o) })
	}
}

// all returns every order until now.
func (l *load) all() []*order {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*order(nil), l.orders...)
}
