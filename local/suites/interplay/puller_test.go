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

	"github.com/jobweaver/jobweaver/shared/apierror"
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
	runs  map[string]*run           // by type
}

func (x *run) pull(api *client.Client, name, owner string) *puller {
	return &puller{
		api: api, name: name, owner: owner,
		logs:  map[string]*Log{x.own("type"): x.log, x.other.own("type"): x.other.log},
		other: map[string]*client.Client{x.own("type"): x.other.API, x.other.own("type"): x.API},
		owns:  map[string]*client.Client{x.own("type"): x.API, x.other.own("type"): x.other.API},
		admin: x.Installation.API,
		hooks: map[string]*client.Client{x.own("type"): x.hooked, x.other.own("type"): x.other.hooked},
		runs:  map[string]*run{x.own("type"): x, x.other.own("type"): x.other},
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
		for _, h := range p.take(attempts) {
			slots <- struct{}{}
			all.Go(func() {
				p.work(ctx, h)
				h.together.leave(p)
				<-slots
			})
		}
	}
}

// hand is an attempt that the puller has claimed.
type hand struct {
	client.WorkAttempt

	log      *Log
	run      *Run
	act      Act
	task     task
	together *together // nil: it is settled by itself
}

// take begins the attempts of a claim.
func (p *puller) take(attempts []client.WorkAttempt) (hands []*hand) {
	for _, a := range attempts {
		log := p.logs[a.JobType]
		if log == nil {
			continue
		}
		r := &Run{Job: a.JobID, Attempt: a.Attempt, Pull: true, Taker: p.owner, Owner: a.OwnerID, Data: a.Payload}
		if string(a.Checkpoint) != "null" {
			r.Had = string(a.Checkpoint)
		}
		h := &hand{WorkAttempt: a, log: log, run: r}
		h.act, h.task = log.start(r)
		hands = append(hands, h)
	}
	join(hands)
	return hands
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

func (p *puller) work(ctx context.Context, h *hand) {
	log, a, r, act, t := h.log, h.WorkAttempt, h.run, h.act, h.task
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
			p.settle(context.WithoutCancel(ctx), h, client.WorkResult{Token: a.Token, Status: client.Failed, ErrorCode: "TEST.CUT"})
		}
		return
	}
	if act.Saves {
		p.steal(ctx, log, a, r)
		p.save(ctx, log, a, r)
	}
	stand, answered := p.await(ctx, h)
	if !answered {
		log.ends(r, "cut", func() { r.Cut = true })
		return
	}
	result := client.WorkResult{Token: a.Token, Status: client.Failed, ErrorCode: "TEST.FAILED"}
	act.Do = stand.next(act.Do)
	how := act.Do
	switch act.Do {
	case childFailed:
		result.Retryable, result.ErrorCode = new(false), string(apierror.ChildFailed)
	case actFail:
	case actFatal:
		result.Retryable, result.ErrorCode = new(false), "TEST.FATAL"
	case actAfter:
		result.RetryAfter = time.Second
	case actSnooze:
		result = client.WorkResult{Token: a.Token, Status: client.WorkSnoozed, Delay: 200 * time.Millisecond}
	case actReceive, actCall:
		result = client.WorkResult{Token: a.Token, Status: client.WorkSnoozed, Delay: stand.delay}
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
		if how != actReceive && how != actCall { // an event, or the end of a job, shortens it
			r.DelayMs = int(max(result.RetryAfter, result.Delay).Milliseconds())
		}
		r.Cut = act.Do == actTardy
	})
	p.settle(ctx, h, result)
	if act.Do == actTwice {
		p.settle(ctx, h, result)
	}
	if act.Do == actLater && act.Back != backEarly {
		log.calls(back, r, t, act)
	}
}

// settle sends a result until it is answered, with those of the attempts that are settled together.
func (p *puller) settle(ctx context.Context, h *hand, result client.WorkResult) {
	if h.together != nil {
		h.together.add(p, h, result)
		return
	}
	p.send(ctx, []*hand{h}, []client.WorkResult{result})
}

// send sends results in one request, until each is answered.
func (p *puller) send(ctx context.Context, hands []*hand, results []client.WorkResult) {
	for began := time.Now(); time.Since(began) < answerWithin; {
		answers, err := p.api.Settle(ctx, p.name, results...)
		unanswered := 0
		for i := range answers {
			if answers[i].Status >= 500 {
				hands[unanswered], results[unanswered] = hands[i], results[i]
				unanswered++
				continue
			}
			hands[i].log.mu.Lock()
			hands[i].run.Settled = append(hands[i].run.Settled, answers[i].Status)
			hands[i].log.mu.Unlock()
		}
		if err == nil {
			hands, results = hands[:unanswered], results[:unanswered]
		}
		var refused *client.Error
		if len(hands) == 0 || errors.As(err, &refused) && refused.Status < 500 || !retry.Pause(ctx, 300*time.Millisecond) {
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
	_, err = thief.WaitInAttempt(ctx, p.name, a.Token, client.WorkWait{Name: "stolen", Event: &client.EventWait{Type: waitedFor}})
	var refused *client.Error
	switch {
	case err == nil:
		got = append(got, http.StatusOK)
	case errors.As(err, &refused):
		got = append(got, refused.Status)
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
