package interplay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// puller is the pull worker of a program: it serves the program's own type.
type puller struct {
	api   *client.Client
	log   *Log
	name  string
	kind  string
	hands sync.Map // tokens of attempts that get beats
}

// run claims attempts until the context ends.
func (p *puller) run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { p.beat(ctx) })
	slots := make(chan struct{}, 20)
	for ctx.Err() == nil {
		slots <- struct{}{}
		<-slots
		attempts, err := p.api.Claim(ctx, client.WorkClaim{
			Worker: p.name, Types: []string{p.kind}, Slots: max(1, cap(slots)-len(slots)), Wait: 5 * time.Second,
		})
		if err != nil {
			pause(ctx, 200*time.Millisecond)
			continue
		}
		for _, a := range attempts {
			r := &Run{Job: a.JobID, Attempt: a.Attempt, Pull: true, Data: a.Payload}
			if string(a.Checkpoint) != "null" {
				r.Had = string(a.Checkpoint)
			}
			act, t := p.log.start(r)
			slots <- struct{}{}
			all.Go(func() {
				p.work(ctx, a, r, act, t)
				<-slots
			})
		}
	}
}

// beat reports the attempts in hand.
func (p *puller) beat(ctx context.Context) {
	for pause(ctx, 2*time.Second) {
		beat := client.WorkBeat{Worker: p.name}
		p.hands.Range(func(token, _ any) bool {
			beat.Attempts = append(beat.Attempts, client.WorkSign{Token: token.(string)})
			return true
		})
		if len(beat.Attempts) == 0 {
			continue
		}
		beaten, err := p.api.Beat(ctx, beat)
		if err != nil {
			continue
		}
		for _, token := range append(beaten.Cancelled, beaten.Lost...) {
			if stop, ok := p.hands.Load(token); ok {
				stop.(context.CancelFunc)()
			}
		}
	}
}

func (p *puller) work(ctx context.Context, a client.WorkAttempt, r *Run, act Act, t task) {
	if act.Do == actHang { // the worker falls silent: the attempt is lost
		p.log.ends(r, act.Do, func() { r.Cut = true })
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
	if !pause(ctx, wait) {
		p.log.ends(r, "cut", func() { r.Cut = true })
		if act.Do != actTardy {
			p.settle(context.WithoutCancel(ctx), r, client.WorkResult{Token: a.Token, Status: client.Failed, ErrorCode: "TEST.CUT"})
		}
		return
	}
	if act.Saves {
		p.save(ctx, a, r)
	}
	result := client.WorkResult{Token: a.Token, Status: client.Failed, ErrorCode: "TEST.FAILED"}
	how := act.Do
	switch act.Do {
	case actFail:
	case actFatal:
		result.Retryable, result.ErrorCode = new(false), "TEST.FATAL"
	case actAfter:
		result.RetryAfter = time.Second
	case actSnooze:
		result = client.WorkResult{Token: a.Token, Status: client.WorkSnoozed, Delay: 200 * time.Millisecond}
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
		p.log.calls(back, r, t, act)
	}
	p.log.ends(r, how, func() {
		r.Output = result.Output
		r.DelayMs = int(max(result.RetryAfter, result.Delay).Milliseconds())
		r.Cut = act.Do == actTardy
	})
	p.settle(ctx, r, result)
	if act.Do == actTwice {
		p.settle(ctx, r, result)
	}
	if act.Do == actLater && act.Back != backEarly {
		p.log.calls(back, r, t, act)
	}
}

// settle sends a result until it is answered.
func (p *puller) settle(ctx context.Context, r *Run, result client.WorkResult) {
	for began := time.Now(); time.Since(began) < answerWithin; {
		answers, err := p.api.Settle(ctx, p.name, result)
		if err == nil && answers[0].Status < 500 {
			p.log.mu.Lock()
			r.Settled = append(r.Settled, answers[0].Status)
			p.log.mu.Unlock()
			return
		}
		var refused *client.Error
		if errors.As(err, &refused) && refused.Status < 500 || !pause(ctx, 300*time.Millisecond) {
			return
		}
	}
}

func (p *puller) save(ctx context.Context, a client.WorkAttempt, r *Run) {
	saved := fmt.Sprintf(`{"saved":%d}`, r.Attempt)
	answers, err := p.api.SaveCheckpoints(ctx, p.name, client.WorkCheckpoint{
		Token: a.Token, Number: 1, Checkpoint: json.RawMessage(saved),
	})
	if err == nil && answers[0].Status == 200 || err != nil { // without an answer it may be stored
		p.log.saves(r)
	}
}
