package interplay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// puller is a pull worker. It serves the types of both owners of a program. With the key of an owner it gets only the
// jobs of that one, with a key of the installation those of all.
type puller struct {
	api   *client.Client
	logs  map[string]*Log // by type
	name  string
	owner string                    // of its key
	hands sync.Map                  // tokens of attempts that get heartbeats
	other map[string]*client.Client // by type: with the key of the owner to which jobs of the type do not belong
	owns  map[string]*client.Client // by type: with that of their owner
	admin *client.Client            // of the installation, to which jobs without an owner belong
	hooks map[string]*client.Client // by type: with that of the owner of the hook's jobs
}

func (x *run) pull(api *client.Client, name, owner string) *puller {
	return &puller{
		api: api, name: name, owner: owner,
		logs:  map[string]*Log{x.own("type"): x.log, x.other.own("type"): x.other.log},
		other: map[string]*client.Client{x.own("type"): x.other.API, x.other.own("type"): x.API},
		owns:  map[string]*client.Client{x.own("type"): x.API, x.other.own("type"): x.other.API},
		admin: x.Installation.API,
		hooks: map[string]*client.Client{x.own("type"): x.hooked, x.other.own("type"): x.other.hooked},
	}
}

// run claims attempts until the context ends.
func (p *puller) run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { p.heartbeat(ctx) })
	slots := make(chan struct{}, 20)
	for ctx.Err() == nil {
		slots <- struct{}{}
		<-slots
		attempts, err := p.api.Claim(ctx, client.WorkClaim{
			Worker: p.name, Types: slices.Sorted(maps.Keys(p.logs)), Slots: max(1, cap(slots)-len(slots)), Wait: 5 * time.Second,
		})
		if err != nil {
			retry.Pause(ctx, 200*time.Millisecond)
			continue
		}
		for _, a := range attempts {
			log := p.logs[a.JobType]
			if log == nil {
				continue
			}
			r := &Run{Job: a.JobID, Attempt: a.Attempt, Pull: true, Taker: p.owner, Owner: a.OwnerID, Data: a.Payload}
			if string(a.Checkpoint) != "null" {
				r.Had = string(a.Checkpoint)
			}
			act, t := log.start(r)
			slots <- struct{}{}
			all.Go(func() {
				p.work(ctx, log, a, r, act, t)
				<-slots
			})
		}
	}
}

// heartbeat reports the attempts in hand.
func (p *puller) heartbeat(ctx context.Context) {
	for retry.Pause(ctx, 2*time.Second) {
		heartbeat := client.WorkHeartbeat{Worker: p.name}
		p.hands.Range(func(token, _ any) bool {
			heartbeat.Attempts = append(heartbeat.Attempts, client.WorkSign{Token: token.(string)})
			return true
		})
		if len(heartbeat.Attempts) == 0 {
			continue
		}
		answer, err := p.api.Heartbeat(ctx, heartbeat)
		if err != nil {
			continue
		}
		for _, token := range append(answer.Cancelled, answer.Lost...) {
			if stop, ok := p.hands.Load(token); ok {
				stop.(context.CancelFunc)()
			}
		}
	}
}

func (p *puller) work(ctx context.Context, log *Log, a client.WorkAttempt, r *Run, act Act, t task) {
	if act.Do == actHang { // the worker falls silent: the attempt is lost
		log.ends(r, act.Do, func() { r.Cut = true })
		return
	}
	var stop context.CancelFunc
	ctx, stop = context.WithCancel(ctx)
	if act.Do != actTardy {
		ctx, stop = context.WithDeadline(ctx, a.Deadline)
	}
	defer stop()
	p.hands.Store(a.Token, stop)
	defer p.hands.Delete(a.Token)
	wait := time.Duration(act.Ms) * time.Millisecond
	if act.Do == actTardy {
		wait = time.Until(a.Deadline) + 300*time.Millisecond
	}
	if !retry.Pause(ctx, wait) {
		log.ends(r, "cut", func() { r.Cut = true })
		if act.Do != actTardy {
			p.settle(context.WithoutCancel(ctx), log, r, client.WorkResult{Token: a.Token, Status: client.Failed, ErrorCode: "TEST.CUT"})
		}
		return
	}
	if act.Saves {
		p.steal(ctx, log, a, r)
		p.save(ctx, log, a, r)
	}
	delay, answered := p.receive(ctx, log, a, r, act)
	if !answered {
		log.ends(r, "cut", func() { r.Cut = true })
		return
	}
	result := client.WorkResult{Token: a.Token, Status: client.Failed, ErrorCode: "TEST.FAILED"}
	how := act.Do
	if how == actReceive && delay == 0 {
		act.Do, how = actOK, actOK
	}
	switch act.Do {
	case actFail:
	case actFatal:
		result.Retryable, result.ErrorCode = new(false), "TEST.FATAL"
	case actAfter:
		result.RetryAfter = time.Second
	case actSnooze:
		result = client.WorkResult{Token: a.Token, Status: client.WorkSnoozed, Delay: 200 * time.Millisecond}
	case actReceive:
		result = client.WorkResult{Token: a.Token, Status: client.WorkSnoozed, Delay: delay}
	case actLater:
		result = client.WorkResult{Token: a.Token, Status: client.Waiting, CallbackTimeout: 2 * time.Second}
		if act.Back != backNever && act.Back != backLate {
			result.CallbackTimeout = 20 * time.Second
		}
	default:
		result = client.WorkResult{Token: a.Token, Status: client.Completed, Output: t.output(r)}
		if how == actTwice {
			how = actOK
		}
	}
	back := callTo{deadline: time.Now().Add(result.CallbackTimeout).Format(time.RFC3339Nano)}
	if a.Callback != nil {
		back.url, back.secret = a.Callback.URL, a.Callback.Secret
	}
	if act.Do == actLater && act.Back == backEarly {
		log.calls(back, r, t, act)
	}
	log.ends(r, how, func() {
		r.Output = result.Output
		if how != actReceive { // an event shortens it
			r.DelayMs = int(max(result.RetryAfter, result.Delay).Milliseconds())
		}
		r.Cut = act.Do == actTardy
	})
	p.settle(ctx, log, r, result)
	if act.Do == actTwice {
		p.settle(ctx, log, r, result)
	}
	if act.Do == actLater && act.Back != backEarly {
		log.calls(back, r, t, act)
	}
}

// settle sends a result until it is answered.
func (p *puller) settle(ctx context.Context, log *Log, r *Run, result client.WorkResult) {
	for began := time.Now(); time.Since(began) < answerWithin; {
		answers, err := p.api.Settle(ctx, p.name, result)
		if err == nil && answers[0].Status < 500 {
			log.mu.Lock()
			r.Settled = append(r.Settled, answers[0].Status)
			log.mu.Unlock()
			return
		}
		var refused *client.Error
		if errors.As(err, &refused) && refused.Status < 500 || !retry.Pause(ctx, 300*time.Millisecond) {
			return
		}
	}
}

// steal does with an attempt what its worker does, with the key of the other owner.
func (p *puller) steal(ctx context.Context, log *Log, a client.WorkAttempt, r *Run) {
	thief := p.other[a.JobType]
	var got []int
	answer, err := thief.Heartbeat(ctx, client.WorkHeartbeat{Worker: p.name, Attempts: []client.WorkSign{{Token: a.Token}}})
	switch {
	case err != nil:
	case slices.Contains(answer.Lost, a.Token):
		got = append(got, http.StatusConflict)
	default:
		got = append(got, http.StatusOK)
	}
	saved, err := thief.SaveCheckpoints(ctx, p.name, client.WorkCheckpoint{Token: a.Token, Number: 9, Checkpoint: json.RawMessage(`{"stolen":1}`)})
	if err == nil {
		got = append(got, saved[0].Status)
	}
	settled, err := thief.Settle(ctx, p.name, client.WorkResult{Token: a.Token, Status: client.Completed, Output: json.RawMessage(`{"stolen":1}`)})
	if err == nil {
		got = append(got, settled[0].Status)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	r.Stolen = got
}

func (p *puller) save(ctx context.Context, log *Log, a client.WorkAttempt, r *Run) {
	saved := fmt.Sprintf(`{"saved":%d}`, r.Attempt)
	answers, err := p.api.SaveCheckpoints(ctx, p.name, client.WorkCheckpoint{
		Token: a.Token, Number: 1, Checkpoint: json.RawMessage(saved),
	})
	if err == nil && answers[0].Status == 200 || err != nil { // without an answer it may be stored
		log.saves(r)
	}
}

// receive asks about the waits of the job, one more of which an act begins, and sends its event: before, meanwhile, or
// a while after. It returns the delay with which to snooze.
func (p *puller) receive(
	ctx context.Context, log *Log, a client.WorkAttempt, r *Run, act Act,
) (delay time.Duration, answered bool) {
	names := log.waitsOf(a.JobID, act.Do == actReceive)
	if len(names) == 0 {
		return 0, true
	}
	if act.Do == actReceive {
		api := p.owns[a.JobType]
		switch a.OwnerID {
		case "":
			api = p.admin
		case log.hook:
			api = p.hooks[a.JobType]
		}
		send(log, api, names[len(names)-1], act.Ms)
	}
	waits := make([]client.WorkWait, len(names))
	for i, name := range names {
		waits[i] = client.WorkWait{Name: name, Event: &client.EventWait{Type: waitedFor, Match: map[string]any{"wait.name": name}}}
	}
	for began := time.Now(); time.Since(began) < answerWithin && ctx.Err() == nil; retry.Pause(ctx, 200*time.Millisecond) {
		asked := time.Now()
		answer, err := p.api.WaitInAttempt(ctx, p.name, a.Token, waits...)
		var refused *client.Error
		if errors.As(err, &refused) && refused.Status < 500 && refused.Status != http.StatusTooManyRequests {
			return 0, false
		}
		if err != nil {
			continue
		}
		log.mu.Lock()
		defer log.mu.Unlock()
		for _, w := range answer.Waits {
			seen := WaitSeen{Name: w.Name, Asked: asked, Status: w.Status}
			if w.Event != nil {
				seen.Event = w.Event.ID
			}
			r.Waits = append(r.Waits, seen)
		}
		return answer.Delay, true
	}
	return 0, false
}

// waitedFor is the type of all events for handlers.
const waitedFor = "com.example.interplay"

// send sends an event twice, until each has a 2xx. With 0 it returns after the first one.
func send(log *Log, api *client.Client, id string, afterMs int) {
	e := client.CloudEvent{
		ID: id, Source: "/witness", Type: waitedFor, Data: json.RawMessage(fmt.Sprintf(`{"wait": {"name": %q, "n": 1}}`, id)),
	}
	once := func() {
		for began := time.Now(); time.Since(began) < 4*answerWithin; {
			if _, err := api.SendEvent(log.ctx, e); err == nil {
				log.sent(id)
				return
			}
			if !retry.Pause(log.ctx, 200*time.Millisecond) {
				return
			}
		}
	}
	if afterMs == 0 {
		once()
	}
	log.later.Go(func() {
		if retry.Pause(log.ctx, time.Duration(3*afterMs)*time.Millisecond) {
			once()
		}
	})
}
