package interplay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// run is one run of a program, for one of its two owners.
type run struct {
	*Installation

	Program

	API    *client.Client // with the key of the owner
	hooked *client.Client // acts for the owner of the hook
	base   string         // begins the names that both owners use
	owner  string
	hook   string // its owner has the same name
	cred   ownerKey
	other  *run // of the other owner
	log    *Log
	rec    *Record

	mu       sync.Mutex
	things   map[string]*thing
	asked    map[string]*Asked  // the request for a thing, to repeat it
	open     map[string]*Window // by subject
	subjects map[string]*sync.Mutex
	last     map[string]Seen
	batches  map[string]string // ids by names
	flows    map[string]string
	bulks    map[string]string
	fanOuts  map[string]bool
	schedule map[string]bool
	queues   map[string]bool

	alerts    []AlertAsked
	scheduled map[string]Job         // what schedules submit, by their names
	shown     map[string]*client.Job // what a list showed last
}

// thing is what a step makes.
type thing struct {
	done chan struct{}
	id   string
	kind string // of a job
}

// Run runs a program for two owners at once, which use the same keys and names, and returns their records. The error is
// of the machinery, never of the installation.
func (i *Installation) Run(ctx context.Context, p Program, name string) (records []*Record, err error) {
	if p.Alone {
		i.alone.Lock()
		defer i.alone.Unlock()
	} else {
		i.alone.RLock()
		defer i.alone.RUnlock()
	}
	a, err := i.admit(ctx, p, name, "a")
	if err != nil {
		return nil, err
	}
	b, err := i.admit(ctx, p, name, "b")
	if err != nil {
		return nil, err
	}
	a.other, b.other = b, a
	working, stop := context.WithCancel(ctx)
	var both, beside sync.WaitGroup
	for _, x := range []*run{a, b} {
		beside.Go(func() { x.pull(x.API, x.owner, x.owner).run(working) })
		both.Go(func() { x.whole(ctx) })
	}
	beside.Go(func() { a.pull(i.API, name, "").run(working) })
	both.Wait()
	stop()
	beside.Wait()
	for _, x := range []*run{a, b} {
		x.mark()
		x.leave(ctx)
		records = append(records, x.rec)
	}
	return records, ctx.Err()
}

// whole runs the program for one of the owners.
func (x *run) whole(ctx context.Context) {
	var beside sync.WaitGroup
	defer beside.Wait()
	watching, unwatch := context.WithCancel(ctx)
	beside.Go(func() { x.watch(watching) })
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	beside.Go(func() { x.follow(following) })
	x.steps(ctx)
	x.lift(ctx)
	x.settle(ctx)
	unwatch()
	x.log.later.Wait()
	x.kept.RLock()
	x.collect(ctx)
	x.catchUp(ctx)
	x.kept.RUnlock()
	unfollow()
	x.clear(ctx)
}

// keys verify what the installation sends: the ends of jobs, and the calls of handlers.
type keys struct{ end, call *client.Webhook }

// secrets reads the keys of the owner, those of the owner of its hook, and those of jobs without an owner.
func (i *Installation) secrets(ctx context.Context, owner, hook string) (k keys, err error) {
	var end, call []string
	for _, query := range []string{"?ownerId=" + owner, "?ownerId=" + hook, ""} {
		var of struct{ End, Call []string }
		err := i.patiently(ctx, func() error {
			_, err := i.API.Do(ctx, http.MethodGet, "/api/webhook-secrets"+query, "", nil, &of)
			return err
		})
		if err != nil {
			return k, fmt.Errorf("read keys: %w", err)
		}
		end, call = append(end, of.End...), append(call, of.Call...)
	}
	k.end, err = client.NewWebhook(end...)
	if err != nil {
		return k, err
	}
	k.call, err = client.NewWebhook(call...)
	return k, err
}

// patiently repeats what an outage may have ended.
func (i *Installation) patiently(ctx context.Context, try func() error) error {
	for began := time.Now(); ; {
		err := try()
		var refused *client.Error
		if err == nil || errors.As(err, &refused) && refused.Status < 500 || time.Since(began) > answerWithin ||
			!retry.Pause(ctx, 300*time.Millisecond) {
			return err
		}
	}
}

// steps runs the steps in their order; one that races does not wait for the one before it.
func (x *run) steps(ctx context.Context) {
	var all sync.WaitGroup
	before := make(chan struct{})
	close(before)
	for _, s := range x.Steps {
		retry.Pause(ctx, time.Duration(s.After)*time.Millisecond)
		if !s.Race {
			<-before
		}
		done := make(chan struct{})
		made := x.announce(s)
		all.Go(func() {
			defer close(done)
			x.step(ctx, s)
			for _, t := range made {
				close(t.done)
			}
		})
		before = done
	}
	all.Wait()
}

// announce makes the things of a step known, so that a step that races waits for them.
func (x *run) announce(s Step) (made []*thing) {
	x.mu.Lock()
	defer x.mu.Unlock()
	add := func(name, kind string) {
		t := &thing{done: make(chan struct{}), kind: kind}
		x.things[name] = t
		made = append(made, t)
	}
	for _, j := range s.Jobs {
		add(j.Name, j.Type)
	}
	switch s.Do {
	case "batch", "flow", "bulk", "schedule-run":
		add(fmt.Sprintf("s%d", s.N), "")
	case "run-again":
		if of := x.things[s.Of]; of != nil {
			add(fmt.Sprintf("s%d", s.N), of.kind)
		}
	}
	return made
}

// id returns the id of what a step has made; empty: there is none.
func (x *run) id(name string) string {
	if caller, ok := strings.CutSuffix(name, ofCaller); ok {
		return x.childOf(x.id(caller))
	}
	x.mu.Lock()
	t := x.things[name]
	x.mu.Unlock()
	if t == nil {
		return ""
	}
	<-t.done
	return t.id
}

func (x *run) made(name, id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if t := x.things[name]; t != nil {
		t.id = id
	}
}

// ask sends a request. If it may be repeated, it is repeated until it is answered.
func (x *run) ask(ctx context.Context, step int, method, path string, body any, a Asked) *Asked {
	a.Step, a.Method, a.Path, a.Sent = step, method, path, time.Now()
	if body != nil {
		a.Body, _ = json.Marshal(body) //nolint:errchkjson // maps of plain values
	}
	for {
		err := x.send(ctx, &a)
		if err == nil && a.Status < 500 && a.Status != http.StatusTooManyRequests {
			break
		}
		if a.Header == "none" || time.Since(a.Sent) > answerWithin || !retry.Pause(ctx, 300*time.Millisecond) {
			break
		}
		a.Again = true
	}
	a.At = time.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rec.Asked = append(x.rec.Asked, &a)
	if a.Status == http.StatusBadRequest || a.Status == http.StatusUnsupportedMediaType || a.Status == http.StatusMethodNotAllowed {
		x.rec.Troubles = append(x.rec.Troubles, fmt.Sprintf("%s %s was answered %d %s; its body: %s", method, path, a.Status, a.Answer, a.Body))
	}
	return &a
}

func (x *run) send(ctx context.Context, a *Asked) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, a.Method, x.URL+a.Path, bytes.NewReader(a.Body))
	if err != nil {
		return err
	}
	if a.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.Type != "" {
		req.Header.Set("Content-Type", a.Type)
	}
	switch {
	case a.Path == "/hooks/"+x.hook:
		req.Header.Set("X-Interplay", hookSecret)
	case a.Admin:
		req.Header.Set("Authorization", "Bearer "+x.admin)
		if a.Hooked {
			req.Header.Set("X-Owner-Id", x.hook)
		}
	default:
		req.Header.Set("Authorization", "Bearer "+x.cred.Key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		a.Status = 0
		return err
	}
	a.Status = res.StatusCode
	text, err := io.ReadAll(res.Body)
	if json.Valid(text) {
		a.Answer = text
		var refused struct{ ErrorCode string }
		_ = json.Unmarshal(text, &refused)
		a.Code = refused.ErrorCode
	}
	return errors.Join(err, res.Body.Close())
}

// watch writes down what the list shows, as it changes.
func (x *run) watch(ctx context.Context) {
	for retry.Pause(ctx, 250*time.Millisecond) {
		page, err := x.API.ListPage(ctx, client.Filter{}, 200, "")
		if err != nil {
			continue
		}
		at := time.Now()
		x.mu.Lock()
		for _, j := range page.Jobs {
			seen := Seen{at, j.JobID, j.Status, j.Version, j.Attempt}
			x.shown[j.JobID] = &j
			if last := x.last[j.JobID]; last.Version != j.Version || last.Status != j.Status {
				x.rec.Seen = append(x.rec.Seen, seen)
				x.last[j.JobID] = seen
			}
		}
		x.mu.Unlock()
		x.waits(ctx, page.Jobs)
	}
}

// enqueue inserts jobs into the outbox of the user's database, in one transaction.
func (x *run) enqueue(ctx context.Context, s Step) {
	conn, err := pgx.Connect(ctx, x.shop)
	if err != nil {
		x.trouble("connect to the user's database: %v", err)
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	tx, err := conn.Begin(ctx)
	if err != nil {
		x.trouble("begin: %v", err)
		return
	}
	ids := map[string]string{}
	sent := time.Now()
	for _, j := range s.Jobs {
		j.Unowned = true
		req, ok := x.request(j)
		if !ok {
			continue
		}
		payload, kind := req["payload"], req["jobType"]
		delete(req, "payload")
		delete(req, "jobType")
		text, _ := json.Marshal(payload) //nolint:errchkjson // maps of plain values
		rest, _ := json.Marshal(req)     //nolint:errchkjson // the same
		var id string
		err := tx.QueryRow(ctx, "select jobweaver.enqueue($1, $2::text::jsonb, $3::text::jsonb)", kind, string(text), string(rest)).Scan(&id)
		if err != nil {
			x.trouble("enqueue %s: %v", rest, err)
			_ = tx.Rollback(ctx)
			return
		}
		ids[j.Name] = id
	}
	if s.Way == "rollback" {
		err = tx.Rollback(ctx)
	} else {
		err = tx.Commit(ctx)
	}
	if err != nil {
		x.trouble("end of a transaction: %v", err)
		return
	}
	for _, j := range s.Jobs {
		id, ok := ids[j.Name]
		if !ok {
			continue
		}
		if s.Way == "rollback" {
			x.commits(id, false)
		} else if x.arrives(ctx, conn, j, id) {
			x.commits(id, true)
			x.accepted(j, s.Way, &Asked{Sent: sent, At: time.Now(), Status: http.StatusAccepted}, id, "")
		}
	}
}

func (x *run) commits(id string, committed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rec.Committed[id] = committed
}

// arrives waits until the relay has submitted a job. It returns false if the gateway refused it, or a policy found
// another one.
func (x *run) arrives(ctx context.Context, conn *pgx.Conn, j Job, id string) bool {
	for began := time.Now(); time.Since(began) < answerWithin; retry.Pause(ctx, 50*time.Millisecond) {
		var waits, refused bool
		err := conn.QueryRow(ctx, `select exists (select from jobweaver.outbox where id = $1::uuid),
			exists (select from jobweaver.outbox_rejected where id = $1::uuid)`, id).Scan(&waits, &refused)
		if err != nil || refused {
			return false
		}
		if waits {
			continue
		}
		if _, err := x.Installation.API.Get(ctx, id, 0); errors.Is(err, client.ErrNotFound) {
			return j.Unique == "" && !j.Drop && j.Debounce == ""
		} else if err == nil {
			return true
		}
	}
	return true
}

func (x *run) trouble(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rec.Troubles = append(x.rec.Troubles, fmt.Sprintf(format, args...))
}

func escape(text string) string { return url.PathEscape(text) }
