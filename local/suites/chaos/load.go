package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// order is a submitted job, and what is known of the answer.
type order struct {
	key       string
	shape     *shape
	body      json.RawMessage
	delivered bool
	line      string // its orderingKey
	after     string // the key of its dependency
	outputOf  string // the key of the job whose output its payload refers to
	caller    string // the key of the job that calls it
	cents     int    // in the data of the event for which it waits

	mu        sync.Mutex
	id        string // empty: unanswered, though it may have been accepted
	asked     time.Time
	accepted  time.Time
	cancelled time.Time // when the API was first seen to show CANCELLED
}

// load submits jobs through both gateways, each until it is answered.
type load struct {
	system   *installation.Installation
	gateways []*client.Client
	seed     uint64
	follow   context.Context // after the faults: ends the retries of unanswered requests

	mu         sync.Mutex
	orders     []*order
	number     int
	complaints []string
	unanswered int // requests without an answer, or with a 503
	bulks      int
	batches    []*batchMade
	ahead      int // operations that skipped jobs, because these were later by PostgreSQL's clock

	submitting, following sync.WaitGroup
}

const patience = 5 * time.Second // for one request

func newLoad(follow context.Context, h *installation.Installation, seed uint64) *load {
	l := &load{system: h, seed: seed, follow: follow}
	for _, base := range h.Gateways {
		l.gateways = append(l.gateways, client.New(base, ""))
	}
	return l
}

// run submits jobs of all shapes until ctx ends, about eighteen a second.
func (l *load) run(ctx context.Context) {
	for range 3 {
		l.every(ctx, 400*time.Millisecond, l.submitOne)
	}
	l.every(ctx, 3*time.Second, l.submitBatch)
	l.every(ctx, 1500*time.Millisecond, l.submitPair)
	l.every(ctx, 3*time.Second, l.submitFlow)
	l.every(ctx, 4*time.Second, l.makeBatch)
	l.every(ctx, 8*time.Second, l.submitBulk)
	l.every(ctx, 3*time.Second, l.submitWaiting)
	l.every(ctx, 3*time.Second, l.submitTogether)
	for line := range 4 {
		l.every(ctx, time.Second, l.submitInOrder(fmt.Sprintf("line-%d", line)))
	}
}

// every calls submit again and again, with a random source of its own.
func (l *load) every(ctx context.Context, pace time.Duration, submit func(*rand.Rand)) {
	l.mu.Lock()
	l.number++
	rnd := rand.New(rand.NewPCG(l.seed, uint64(l.number)))
	l.mu.Unlock()
	l.submitting.Go(func() {
		for retry.Pause(ctx, pace/2+time.Duration(rnd.Int64N(int64(pace)))) {
			submit(rnd)
		}
	})
}

func (l *load) newOrder(rnd *rand.Rand, s *shape, tags []string, more ...any) *order {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	o := &order{key: fmt.Sprintf("k%d", l.number), shape: s, delivered: s.delivered && rnd.IntN(3) == 0, asked: time.Now()}
	o.body = s.body(rnd, o.key, l.system.Witness.Address, o.delivered, tags, more...)
	l.orders = append(l.orders, o)
	return o
}

// unkeyed returns the request without its idempotencyKey, for one of several jobs that have a key together.
func (o *order) unkeyed() (request map[string]any) {
	if err := json.Unmarshal(o.body, &request); err != nil {
		panic(err) // it is JSON
	}
	delete(request, "idempotencyKey")
	return request
}

func (l *load) submitOne(rnd *rand.Rand) { l.submit(l.newOrder(rnd, anyOf(shapes, rnd), nil)) }

func (l *load) submit(o *order) {
	var answer client.Accepted
	l.post("/api/jobs", o.body, &answer)
	l.accept(o, answer.JobID)
}

func (l *load) submitBatch(rnd *rand.Rand) {
	var list []*order
	for range 4 + rnd.IntN(8) {
		list = append(list, l.newOrder(rnd, batchShape, nil))
	}
	l.submitAll(list)
}

func (l *load) submitAll(list []*order) {
	var bodies []json.RawMessage
	for _, o := range list {
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
	if !l.post("/api/jobs/batch", body, &answer) {
		return
	}
	for i, r := range answer.Results {
		if r.Status != http.StatusAccepted && r.Status != http.StatusOK {
			l.complain("job %s of a batch is answered %d %s", list[i].key, r.Status, r.Error)
		}
		l.accept(list[i], r.JobID)
	}
}

// submitPair submits a job and one that depends on it. Some of the former fail.
func (l *load) submitPair(rnd *rand.Rand) {
	parent, child := parentShape, childShape
	if rnd.IntN(4) == 0 {
		parent, child = badParent, orphanShape
	}
	first := l.newOrder(rnd, parent, nil)
	l.submit(first)
	if first.id == "" {
		return
	}
	second := l.newOrder(rnd, child, nil, "after", []string{first.id})
	second.after = first.key
	l.submit(second)
}

// submitFlow submits a job, one that uses its output, and one that runs if the first fails, which some do.
func (l *load) submitFlow(rnd *rand.Rand) {
	parent, child, undo := parentShape, outputShape, skippedShape
	if rnd.IntN(4) == 0 {
		parent, child, undo = badParent, orphanShape, undoShape
	}
	orders := map[string]*order{
		"first": l.newOrder(rnd, parent, nil), "then": l.newOrder(rnd, child, nil), "undo": l.newOrder(rnd, undo, nil),
	}
	jobs := map[string]map[string]any{}
	for name, o := range orders {
		jobs[name] = o.unkeyed()
	}
	jobs["then"]["after"] = []string{"first"}
	jobs["undo"]["after"] = []any{map[string]any{"name": "first", "on": "failed"}}
	if child == outputShape { // it fails as many attempts as the first one had
		orders["then"].after, orders["then"].outputOf = orders["first"].key, orders["first"].key
		data := jobs["then"]["payload"].(map[string]any)["data"].(map[string]any)
		data["failAttempts"] = client.Output{Of: "first", Path: "$.attempt"}
	}
	body, err := json.Marshal(map[string]any{"idempotencyKey": orders["first"].key, "jobs": jobs})
	if err != nil {
		panic(err) // it was JSON
	}
	var answer client.MadeFlow
	l.post("/api/flows", body, &answer)
	for name, o := range orders {
		l.accept(o, answer.Jobs[name])
	}
}

func (l *load) submitInOrder(line string) func(*rand.Rand) {
	return func(rnd *rand.Rand) {
		o := l.newOrder(rnd, orderedShape, nil, "orderingKey", line)
		o.line = line
		l.submit(o)
	}
}

// submitBulk submits some jobs for tomorrow and cancels all of them by one operation.
func (l *load) submitBulk(rnd *rand.Rand) {
	l.mu.Lock()
	l.bulks++
	tag := fmt.Sprintf("bulk-%d", l.bulks)
	l.mu.Unlock()
	var list []*order
	for range 10 {
		list = append(list, l.newOrder(rnd, bulkShape, []string{tag}))
	}
	l.submitAll(list)
	l.following.Go(func() { l.cancelAll(tag, list[len(list)-1]) })
}

// cancelAll cancels the jobs by one operation, and by a second one if PostgreSQL's clock was set back after the jobs
// were accepted: by that clock the first operation came before them, and skips them (docs/reliability.md).
func (l *load) cancelAll(tag string, last *order) {
	for n := 0; last.id != ""; n++ {
		body := fmt.Appendf(nil, `{"command": "cancel", "filter": {"tag": %q}, "idempotencyKey": "%s-%d"}`, tag, tag, n)
		var operation, job struct{ CreatedAt time.Time }
		if !l.post("/api/operations", body, &operation) || !l.do(http.MethodGet, "/api/jobs/"+last.id, nil, &job) ||
			!operation.CreatedAt.Before(job.CreatedAt) {
			return
		}
		l.mu.Lock()
		l.ahead++
		l.mu.Unlock()
		if !retry.Pause(l.follow, 2*time.Second) {
			return
		}
	}
}

// post repeats a request through one gateway after the other until it is answered; false: it never was.
func (l *load) post(path string, body []byte, out any) bool {
	return l.do(http.MethodPost, path, body, out)
}

func (l *load) do(method, path string, body []byte, out any) bool {
	return l.ask(method+" "+path, func(ctx context.Context, api *client.Client) error {
		_, err := api.Do(ctx, method, path, "application/json", body, out)
		return err
	})
}

// ask repeats a request of any kind.
func (l *load) ask(what string, send func(context.Context, *client.Client) error) bool {
	for n := rand.IntN(len(l.gateways)); ; n++ {
		ctx, cancel := context.WithTimeout(l.follow, patience)
		err := send(ctx, l.gateways[n%len(l.gateways)])
		cancel()
		var answer *client.Error
		switch again := []int{http.StatusServiceUnavailable, http.StatusTooManyRequests}; {
		case err == nil:
			return true
		case errors.As(err, &answer) && !slices.Contains(again, answer.Status):
			if answer.Status != http.StatusConflict {
				l.complain("%s: %v", what, err)
			}
			return false
		}
		l.mu.Lock()
		l.unanswered++
		l.mu.Unlock()
		if !retry.Pause(l.follow, 200*time.Millisecond) {
			return false
		}
	}
}

func (l *load) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.complaints = append(l.complaints, fmt.Sprintf(format, args...))
}

// accept records the id with which a job was accepted.
func (l *load) accept(o *order, id string) {
	if id == "" {
		return
	}
	o.mu.Lock()
	o.id, o.accepted = id, time.Now()
	o.mu.Unlock()
	if o.shape.cancel {
		l.following.Go(func() { l.cancel(o) })
	}
}

// cancel cancels a job within three seconds, and watches it until it has ended. The cancel is refused only if it has
// ended before: these jobs get no other command but a wake by their waits, which gives way.
func (l *load) cancel(o *order) {
	retry.Pause(l.follow, rand.N(3*time.Second))
	l.post("/api/jobs/"+o.id+"/cancel", nil, nil)
	for {
		var job struct{ Status string }
		asked := l.do(http.MethodGet, "/api/jobs/"+o.id, nil, &job)
		if asked && job.Status == cancelled {
			o.mu.Lock()
			o.cancelled = time.Now()
			o.mu.Unlock()
		}
		if !asked || job.Status == cancelled || job.Status == completed ||
			!retry.Pause(l.follow, 300*time.Millisecond) {
			return
		}
	}
}

// all returns every order until now.
func (l *load) all() []*order {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*order(nil), l.orders...)
}

// late returns the brisk jobs that were accepted before an instant and are not done.
func (l *load) late(before time.Time) (keys []string) {
	for _, o := range l.all() {
		o.mu.Lock()
		counts := o.shape.brisk && !o.accepted.IsZero() && o.accepted.Before(before)
		o.mu.Unlock()
		if !counts {
			continue
		}
		if _, done := l.system.Witness.DoneAt(o.key); !done {
			keys = append(keys, o.key)
		}
	}
	return keys
}
