package pull

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/jobrun"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pullwire"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// inHand is a claimed attempt, from the call of its handler until its outcome is in the store. The function's mutex
// guards it, except fields that never change.
type inHand struct {
	attempt  *handlers.Attempt
	deadline time.Time       // once it is handed out
	changed  chan struct{}   // has one value when the handler should look
	stored   chan struct{}   // closed when the outcome is in the store
	ended    <-chan struct{} // closed when it must not start any more

	token     string // empty: it has not been given to a claim
	caller    pullwire.Caller
	by        *pullWorker
	leaseAt   time.Time // without a heartbeat by then it is lost, or given back if no pull worker has it
	result    *apibody.WorkResult
	cancelled bool
	keptBack  bool          // held back because the worker was not fresh
	over      bool          // its handler has ended without a result
	outcome   jobevent.Kind // once stored
}

func (h *inHand) kind() runjob.Kind {
	return runjob.Kind{Queue: h.attempt.Queue, JobType: h.attempt.JobType, OwnerID: h.attempt.OwnerID}
}

// bytes returns how many bytes of an answer the attempt takes.
func (h *inHand) bytes() int {
	bytes := len(h.attempt.Payload) + len(h.attempt.Saved) + len(h.attempt.Event)
	for _, parent := range h.attempt.Parents {
		bytes += len(parent.Output)
	}
	return bytes
}

func (h *inHand) rouse() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

func (h *inHand) hasEnded() bool {
	select {
	case <-h.ended:
		return true
	default:
		return false
	}
}

// give adds an attempt to the answer of a claim. It returns true.
func (c *openClaim) give(h *inHand) bool {
	h.caller, h.by, h.keptBack = c.Caller, c.by, false
	c.got = append(c.got, h)
	c.bytes += h.bytes()
	c.rouse()
	return true
}

// run is the handler of every job type: it lets a pull worker run the attempt.
func (f *Function) run(ctx context.Context, a *handlers.Attempt) (handlers.Result, error) {
	h := &inHand{
		attempt: a, changed: make(chan struct{}, 1), stored: make(chan struct{}), ended: ctx.Done(),
		leaseAt: time.Now().Add(f.timing.unasked), // from now, however often a claim gives it back
	}
	a.WhenSettled(func(kind jobevent.Kind) { f.stored(h, kind) })
	f.offer(h)
	return f.await(ctx, h)
}

// offer hands an attempt to the claim that keeps a place for it, or to another one.
func (f *Function) offer(h *inHand) {
	fresh := f.fresh()
	f.mu.Lock()
	defer f.mu.Unlock()
	key := workerdb.Key{JobID: h.attempt.JobID, Attempt: h.attempt.Number}
	bytes := h.bytes()
	var c *openClaim
	if p := f.places[key]; p != nil {
		f.free(key, p)
		c = p.claim
	}
	if !fresh {
		h.keptBack = true
		f.unasked = append(f.unasked, h)
		h.rouse() // its handler asks from now on whether the worker is fresh
		return
	}
	if c == nil || !c.hasRoom(bytes) {
		c = f.find(h.kind(), bytes)
	}
	if c == nil {
		f.unasked = append(f.unasked, h)
		f.peeked(h.kind())
		return
	}
	f.give(c, h)
}

func (f *Function) give(c *openClaim, h *inHand) {
	c.give(h)
	if !c.hasRoom(0) {
		f.unlist(c)
	}
}

// offerAgain hands out an attempt that was kept back, once the worker is fresh. The caller holds the mutex.
func (f *Function) offerAgain(h *inHand) {
	h.keptBack = false
	if c := f.find(h.kind(), h.bytes()); c != nil {
		f.unasked = slices.DeleteFunc(f.unasked, func(other *inHand) bool { return other == h })
		f.give(c, h)
		return
	}
	f.peeked(h.kind())
}

// takeBack offers attempts again that their claim cannot have.
func (f *Function) takeBack(got []*inHand) {
	for _, h := range got {
		f.offer(h)
	}
}

// hand gives attempts their tokens, with which their pull worker starts them: from now on their timeouts count, and
// they do not expire. So it follows the same rules as a pool that starts attempts (package pool): none starts while the
// worker is silent, or after its context has ended. The order of the two checks matters. The first heartbeats after a
// silence end the contexts of attempts that others have settled, and only then is the worker fresh again.
func (f *Function) hand(got []*inHand, instance string) pullwire.Attempts {
	answer := pullwire.Attempts{Attempts: make([]pullwire.Attempt, 0, len(got))}
	if !f.fresh() {
		f.takeBack(got)
		return answer
	}
	started := make([]bool, len(got))
	for i, h := range got { // before the mutex, which the pool takes while it holds its own
		h.attempt.RunBy(h.by.key.name) // before the start, which the next heartbeat reports with the name
		started[i] = !h.hasEnded() && h.attempt.Start()
	}
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, h := range got {
		if h.over || h.hasEnded() || !started[i] {
			continue
		}
		a := h.attempt
		h.deadline = now.Add(a.Timeout)
		h.token = instance + "." + a.Token + "." + strings.ToLower(rand.Text())
		h.leaseAt = now.Add(f.timing.lease)
		h.by.running++
		f.tokens[h.token] = h
		handed := pullwire.Attempt{
			WorkAttempt: client.WorkAttempt{
				Info: jobrun.Info{
					JobID: a.JobID.String(), Attempt: a.Number, JobType: a.JobType, Queue: a.Queue, TraceID: a.TraceID.String(),
				},
				Token: h.token, Payload: a.Payload, Deadline: h.deadline.UTC().Truncate(time.Millisecond), Checkpoint: a.Saved,
			},
			Event: a.Event,
		}
		for _, p := range a.Parents {
			handed.Parents = append(handed.Parents, client.WorkParent{Name: p.Name, JobID: p.JobID.String(), Output: p.Output})
		}
		if a.OwnerID != "" {
			handed.OwnerID = &a.OwnerID
		}
		if f.cfg.CallbackURL != "" {
			handed.Callback = &client.WorkCallback{URL: f.cfg.CallbackURL, Secret: f.keys.Secret(a.Token)}
		}
		answer.Attempts = append(answer.Attempts, handed)
		h.rouse()
	}
	return answer
}

// await waits for the outcome of an attempt.
func (f *Function) await(ctx context.Context, h *inHand) (handlers.Result, error) {
	timer := time.NewTimer(f.timing.unasked)
	defer timer.Stop()
	ended := ctx.Done()
	for {
		select {
		case <-h.changed:
		case <-timer.C:
		case <-ended:
			ended = nil
			f.cancel(ctx, h)
		}
		result, wait, err := f.look(ctx, h)
		switch {
		case err != nil:
			return handlers.Result{}, err
		case result != nil:
			return resultOf(result)
		}
		timer.Reset(wait)
	}
}

// cancel lets the answer to the next heartbeat report the cancel to the pull worker, and gives it time to settle the
// attempt.
func (f *Function) cancel(ctx context.Context, h *inHand) {
	if !errors.Is(context.Cause(ctx), handlers.ErrCancelled) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.token != "" {
		h.cancelled = true
		h.leaseAt = time.Now().Add(f.timing.patience)
	}
}

// look returns what the attempt's handler must return, or how long it must wait.
func (f *Function) look(ctx context.Context, h *inHand) (*apibody.WorkResult, time.Duration, error) {
	fresh := f.fresh()
	f.mu.Lock()
	defer f.mu.Unlock()
	wait := time.Until(h.leaseAt)
	switch {
	case h.result != nil:
		return h.result, 0, nil
	case h.keptBack && wait > 0 && ctx.Err() == nil:
		if !fresh {
			return nil, min(wait, f.timing.again), nil
		}
		f.offerAgain(h)
		return nil, wait, nil
	case wait > 0 && (ctx.Err() == nil || h.cancelled):
		return nil, wait, nil
	}
	h.over = true
	f.unasked = slices.DeleteFunc(f.unasked, func(other *inHand) bool { return other == h })
	switch {
	case ctx.Err() != nil:
		return nil, 0, context.Cause(ctx)
	case h.token == "":
		return nil, 0, handlers.ErrGivenBack
	}
	f.metrics.lost.Inc()
	return nil, 0, fmt.Errorf("no sign of its pull worker for %s: %w", f.timing.lease, errSilent{})
}

// errSilent is handlers.ErrLost with a message of its own.
type errSilent struct{}

func (errSilent) Error() string        { return "it runs again" }
func (errSilent) Is(target error) bool { return target == handlers.ErrLost }

func resultOf(r *apibody.WorkResult) (handlers.Result, error) {
	switch r.Status {
	case apibody.WorkFailed:
		return handlers.Result{}, &handlers.Failure{
			Code: r.ErrorCode, Message: r.Message, Retryable: r.Retryable, RetryAfter: r.RetryAfter, Private: true,
		}
	case apibody.WorkSnoozed:
		return handlers.Result{Snooze: r.Snooze}, nil
	case apibody.WorkWaiting:
		return handlers.Result{WaitFor: r.CallbackTimeout}, nil
	case apibody.WorkCompleted:
	}
	return handlers.Result{Output: r.Output}, nil
}

// stored notes that an attempt's outcome is in the store.
func (f *Function) stored(h *inHand, kind jobevent.Kind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h.outcome, h.over = kind, true
	close(h.stored)
	if h.token == "" {
		return
	}
	now := time.Now()
	h.by.running--
	h.by.pace.finish(now)
	delete(f.tokens, h.token)
	if now.Sub(f.turned) >= f.timing.forget {
		f.ended = [2]map[string]*inHand{{}, f.ended[0]}
		f.turned = now
	}
	if h.result != nil {
		h.attempt, h.result.Output = nil, nil // the memory of settled attempts is not needed for an answer
		f.ended[0][h.token] = h
	}
}

// accepted reports whether a stored outcome is what a pull worker sent. A cancelled attempt may fail.
func accepted(sent apibody.WorkStatus, kind jobevent.Kind) bool {
	switch sent {
	case apibody.WorkCompleted:
		return kind == workerdb.Completed
	case apibody.WorkFailed:
		return kind == jobevent.KindFailed || kind == jobevent.KindCancelled
	case apibody.WorkSnoozed:
		return kind == jobevent.KindSnoozed
	case apibody.WorkWaiting:
		return kind == workerdb.Waiting
	}
	return false
}

// heartbeat handles a heartbeat: it renews the leases of a pull worker's attempts.
func (f *Function) heartbeat(b pullwire.Heartbeat) pullwire.HeartbeatAnswer {
	answer := pullwire.HeartbeatAnswer{Cancelled: []string{}, Lost: []string{}}
	for _, one := range b.Attempts {
		h, state := f.renew(b.Caller, one.Token)
		switch state {
		case isOver:
			answer.Lost = append(answer.Lost, one.Token)
			continue
		case isCancelled:
			answer.Cancelled = append(answer.Cancelled, one.Token)
		case isRunning:
		}
		for _, line := range one.Log {
			level := slog.LevelInfo
			_ = level.UnmarshalText([]byte(line.Level)) // the gateway has refused others; empty: info
			h.Log(level, line.Text)
		}
		if p := one.Progress; p != nil {
			h.Progress(p.Percent, p.Message)
		}
	}
	return answer
}

type state int

const (
	isOver state = iota
	isCancelled
	isRunning
)

func (f *Function) renew(caller pullwire.Caller, token string) (*handlers.Attempt, state) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.tokens[token]
	switch {
	case h == nil || h.over || h.caller != caller:
		return nil, isOver
	case h.cancelled:
		return h.attempt, isCancelled
	}
	now := time.Now()
	h.leaseAt, h.by.seenAt = now.Add(f.timing.lease), now
	return h.attempt, isRunning
}

// save saves checkpoints of attempts, and answers when the store has them. It renews their leases as a heartbeat does.
func (f *Function) save(ctx context.Context, c pullwire.Checkpoints) pullwire.Settled {
	ctx, cancel := context.WithTimeout(ctx, f.timing.settle)
	defer cancel()
	answer := pullwire.Settled{Results: make([]pullwire.Answer, len(c.Checkpoints))}
	var saving sync.WaitGroup
	for i, one := range c.Checkpoints {
		saving.Go(func() { answer.Results[i] = f.saveOne(ctx, c.Caller, one) })
	}
	saving.Wait()
	return answer
}

func (f *Function) saveOne(ctx context.Context, caller pullwire.Caller, one apibody.WorkCheckpoint) pullwire.Answer {
	a, state := f.renew(caller, one.Token)
	if state == isOver {
		return pullwire.Over(one.Token, "the attempt is over, or was never this worker's")
	}
	var wrong *durable.Failure
	switch err := a.Save(ctx, one.Number, one.Checkpoint); {
	case err == nil:
		return pullwire.Answer{Token: one.Token, Status: http.StatusOK}
	case errors.Is(err, durable.ErrOver):
		return pullwire.Over(one.Token, "the attempt has ended, or its worker was silent for too long")
	case errors.As(err, &wrong):
		return pullwire.Refused(one.Token, apierror.New(apierror.InvalidJobRequest, "%s", wrong.Message))
	}
	return pullwire.Unavailable(one.Token)
}

// settle handles results of attempts, and answers when the store has them.
func (f *Function) settle(ctx context.Context, s pullwire.Settle) pullwire.Settled {
	ctx, cancel := context.WithTimeout(ctx, f.timing.settle)
	defer cancel()
	waiting := make([]*inHand, len(s.Results))
	for i := range s.Results {
		waiting[i] = f.result(s.Caller, &s.Results[i])
	}
	answer := pullwire.Settled{Results: make([]pullwire.Answer, len(waiting))}
	for i, h := range waiting {
		answer.Results[i] = f.answer(ctx, h, &s.Results[i])
	}
	return answer
}

// result passes a result on to the attempt's handler; nil: there is no such attempt any more.
func (f *Function) result(caller pullwire.Caller, r *apibody.WorkResult) *inHand {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.tokens[r.Token]
	if h == nil {
		for _, lately := range f.ended {
			if h == nil {
				h = lately[r.Token]
			}
		}
	}
	// At its deadline an attempt is over, even if the pool's timer is late.
	if h == nil || h.caller != caller || h.result == nil && (h.over || time.Now().After(h.deadline)) {
		return nil
	}
	if h.result == nil {
		kept := *r
		h.result = &kept
		h.rouse()
	} else if h.result.Status != r.Status {
		return nil
	}
	return h
}

func (f *Function) answer(ctx context.Context, h *inHand, r *apibody.WorkResult) pullwire.Answer {
	if h == nil {
		return f.refused(pullwire.Over(r.Token, "the attempt is over, or was never this worker's"))
	}
	select {
	case <-h.stored:
	case <-ctx.Done():
		return f.refused(pullwire.Unavailable(r.Token))
	}
	if !accepted(r.Status, h.outcome) {
		return f.refused(pullwire.Over(r.Token, "the attempt had ended otherwise: "+string(h.outcome)))
	}
	f.metrics.settled.WithLabelValues(strings.ToLower(string(r.Status))).Inc()
	return pullwire.Answer{Token: r.Token, Status: 200}
}

func (f *Function) refused(answer pullwire.Answer) pullwire.Answer {
	f.metrics.refused.Inc()
	return answer
}
