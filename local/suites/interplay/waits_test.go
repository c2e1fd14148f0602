package interplay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// standing is how the waits of a job stand.
type standing struct {
	delay  time.Duration // with which to snooze; 0: none is open
	calls  bool          // a call is open
	failed bool          // a job that it called has not completed
}

// childFailed is how an attempt ends whose job has called one that has not completed.
const childFailed = "child failed"

// next returns what an attempt does in place of its act, as the worker kits do: it fails if a call has failed, and
// snoozes while one is open, unless it fails for another reason.
func (s standing) next(act string) string {
	switch {
	case s.failed:
		return childFailed
	case s.calls && (act == actOK || act == actTwice || act == actReceive || act == actCall):
		return actCall
	case act == actReceive && s.delay == 0, act == actCall:
		return actOK
	}
	return act
}

// await asks about the waits of the job, with those that an act begins. It sends the event of such a wait: before,
// meanwhile, or a while after.
func (p *puller) await(ctx context.Context, h *hand) (stand standing, answered bool) {
	known := h.log.waitsOf(h.JobID, h.act)
	if len(known) == 0 {
		return stand, true
	}
	if h.act.Do == actReceive {
		send(h.log, p.clientOf(h), known[len(known)-1].name, h.act.Ms)
	}
	x := p.runs[h.JobType]
	waits := make([]client.WorkWait, len(known))
	for i, w := range known {
		waits[i] = client.WorkWait{Name: w.name, Group: w.group}
		if w.child.Name == "" {
			waits[i].Event = &client.EventWait{Type: waitedFor, Match: map[string]any{"wait.name": w.name}}
			continue
		}
		request := x.callRequest(w.child)
		waits[i].Job = &request
	}
	for began := time.Now(); time.Since(began) < answerWithin && ctx.Err() == nil; retry.Pause(ctx, 200*time.Millisecond) {
		asked := time.Now()
		for _, w := range known {
			x.called(w, h.OwnerID, "", asked)
		}
		answer, err := p.api.WaitInAttempt(ctx, p.name, h.Token, waits...)
		var refused *client.Error
		if errors.As(err, &refused) && refused.Status < 500 && refused.Status != http.StatusTooManyRequests {
			return stand, false
		}
		if err != nil {
			continue
		}
		for i, w := range answer.Waits {
			if w.Job != nil {
				x.called(known[i], h.OwnerID, w.Job.JobID, asked)
			}
		}
		return h.seen(known, answer, asked), true
	}
	return stand, false
}

// seen writes down how waits stand.
func (h *hand) seen(known []*waitOf, answer client.WorkWaitAnswer, asked time.Time) (stand standing) {
	stand.delay = answer.Delay
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	for i, w := range answer.Waits {
		seen := WaitSeen{Name: w.Name, Asked: asked, Status: w.Status, Group: known[i].group}
		if w.Event != nil {
			seen.Event = w.Event.ID
		}
		if w.Job != nil {
			seen.Job = w.Job.JobID
			stand.calls = stand.calls || w.Status == client.WaitOpen
			if terminal(w.Job.Status) {
				seen.Ended, seen.Output = w.Job.Status, w.Job.Output
				stand.failed = stand.failed || w.Job.Status != client.Completed
			}
		}
		h.run.Waits = append(h.run.Waits, seen)
	}
	return stand
}

// clientOf returns a client with the key of the owner of an attempt's job.
func (p *puller) clientOf(h *hand) *client.Client {
	switch h.OwnerID {
	case "":
		return p.admin
	case h.log.hook:
		return p.hooks[h.JobType]
	}
	return p.owns[h.JobType]
}

// calledBy names the job that a handler calls, by its job and the number of the wait.
func calledBy(job string, wait int) string { return fmt.Sprint(job, ofCaller, wait) }

// ofCaller follows the name of a job in a step about one that its handler has called.
const ofCaller = ">"

// callRequest returns the request for a job that a handler calls.
func (x *run) callRequest(j Job) client.JobRequest {
	return client.JobRequest{
		JobType: x.kind(j), Queue: x.queue(j), Payload: x.payload(j, nil), Tags: append([]string{x.owner}, j.Tags...),
		Priority: j.Priority, MaxRetryCount: j.MaxRetries, RetryPolicy: &client.RetryPolicy{Type: "fixed", DelayMs: new(int64(100))},
		Delay: time.Duration(j.DelayMs) * time.Millisecond, Timeout: time.Duration(j.TimeoutMs) * time.Millisecond,
	}
}

// called writes down a job that a handler calls: before its id is known, since the answer may not arrive, and with it.
func (x *run) called(w *waitOf, owner, id string, asked time.Time) {
	if w.child.Name == "" {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	name := w.child.Name
	if s := x.rec.Specs[name]; s != nil {
		switch {
		case id == "" || s.ID == id:
			return
		case s.ID == "":
			s.ID, s.Made, s.At = id, true, time.Now()
			return
		}
		if name += " anew " + id; x.rec.Specs[name] != nil {
			return
		}
	}
	x.rec.Specs[name] = &Spec{
		Job: w.child, Way: wayCall, ID: id, Made: id != "", Sent: asked, At: time.Now(), Status: http.StatusAccepted,
		Owner: owner, Foreign: owner != x.owner,
	}
}

// adopt writes down the ids of jobs that a handler has called without an answer, and that have run.
func (x *run) adopt() {
	ran := map[string]string{} // names by id
	x.log.mu.Lock()
	for _, r := range x.log.runs {
		if strings.Contains(r.Name, ofCaller) {
			ran[r.Job] = r.Name
		}
	}
	x.log.mu.Unlock()
	for id, name := range ran {
		x.mu.Lock()
		s := x.rec.Specs[name]
		x.mu.Unlock()
		if s != nil {
			x.called(&waitOf{child: s.Job}, s.Owner, id, s.Sent)
		}
	}
}

// wayCall is the way in which a handler makes a job.
const wayCall = "call"

// childOf waits a while for a job that the handler of another one has called, and returns its id; empty: there is none.
func (x *run) childOf(caller string) string {
	for began := time.Now(); caller != "" && time.Since(began) < 3*time.Second; retry.Pause(x.log.ctx, 50*time.Millisecond) {
		x.mu.Lock()
		for name, s := range x.rec.Specs {
			if s.Way == wayCall && s.ID != "" && !s.Foreign && strings.HasPrefix(name, caller+ofCaller) {
				x.mu.Unlock()
				return s.ID
			}
		}
		x.mu.Unlock()
	}
	return ""
}

// calls draws the jobs that a handler calls together.
func (d *drawing) calls() (list []Job) {
	for range pick(d, "calls", 2, 1, 3, 1) {
		j := Job{Type: pick(d, "type", "FUNCTION", "PULL"), Policy: "fixed", WaitMs: 20_000, TimeoutMs: 20_000}
		for range pick(d, "acts", 1, 2) {
			a := Act{Do: pick(d, "act", actOK, actFail, actOK, actFatal, actOK, actLater), Ms: pick(d, "ms", 20, 0, 300, 1500)}
			if a.Do == actLater {
				a.Back = pick(d, "back", backOK, backFail)
			}
			j.Acts = append(j.Acts, a)
		}
		if j.Acts[len(j.Acts)-1].Do == actFail && d.eighths("succeeds", 5) {
			j.Acts = append(j.Acts, Act{Do: actOK})
		}
		if d.eighths("retries", 4) {
			j.MaxRetries = new(pick(d, "maxRetries", 0, 1))
		}
		if d.eighths("delay", 2) {
			j.DelayMs = pick(d, "delay", 300, 1500)
		}
		if d.eighths("tags", 1) {
			j.Tags = []string{"red"}
		}
		list = append(list, j)
	}
	return list
}

// afterCall gives a command to a job that calls others, or to one of these, while they are under way or once one has ended.
func (d *drawing) afterCall(jobs []Job) {
	i := slices.IndexFunc(jobs, calls)
	if i < 0 || !d.eighths("after a call", 5) {
		return
	}
	s := Step{Do: pick(d, "command", "delete", "retry", "cancel"), Of: jobs[i].Name}
	if s.Do == "delete" || d.eighths("of a call", 3) {
		s.Of += ofCaller
	}
	s.Ended = s.Do != "cancel"
	if s.Do == "cancel" && s.Of == jobs[i].Name { // a job that it calls is due long after the cancel has to reach it
		for _, a := range jobs[i].Acts {
			if a.Do == actCall {
				a.Calls[0].DelayMs = 9000
			}
		}
	}
	d.add(s)
	d.Steps[len(d.Steps)-1].Race = false
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
