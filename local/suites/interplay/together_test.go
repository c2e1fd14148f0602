package interplay

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// together are attempts of one claim that a pull worker settles in one request, as a batch handler does.
type together struct {
	mu      sync.Mutex
	open    int // attempts that have neither a result nor left
	hands   []*hand
	results []client.WorkResult
	sent    chan struct{} // closed once the results are answered
}

// join lets most attempts of a claim be settled together that have the same job type and end soon.
func join(hands []*hand) {
	types := map[string][]*hand{}
	for _, h := range hands {
		if !slices.Contains([]string{actHang, actTardy, actTwice}, h.act.Do) && time.Until(h.Deadline) > 10*time.Second {
			types[h.JobType] = append(types[h.JobType], h)
		}
	}
	for _, list := range types {
		if id := list[0].JobID; len(list) < 2 || id[len(id)-1] < '4' { // a quarter of them is not
			continue
		}
		t := &together{open: len(list), sent: make(chan struct{})}
		for _, h := range list {
			h.together = t
		}
	}
}

// add adds the result of an attempt, and returns once all results are answered. The last attempt sends them.
func (t *together) add(p *puller, h *hand, result client.WorkResult) {
	t.mu.Lock()
	t.hands, t.results = append(t.hands, h), append(t.results, result)
	t.mu.Unlock()
	h.together = nil
	t.leave(p)
	<-t.sent
}

// leave is for an attempt that has given its result, or has none.
func (t *together) leave(p *puller) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open--; t.open > 0 {
		return
	}
	defer close(t.sent)
	for _, h := range t.hands {
		h.log.mu.Lock()
		h.run.With = len(t.hands) - 1
		h.log.mu.Unlock()
	}
	if len(t.hands) > 0 {
		p.send(context.Background(), t.hands, t.results)
	}
}

var togetherRules = []Rule{
	{
		"stored", "An answer of 200 means that the outcome is stored.", "docs/pull-workers.md",
		func(f *facts, found func(_, _, _ string)) { f.checkStored(found, false) },
	},
	{
		"settled alone", "each job is settled, retried and cancelled by itself", "docs/tasks.md",
		func(f *facts, found func(_, _, _ string)) { f.checkStored(found, true) },
	},
}

// outcomes are those that an attempt of a pull worker may have once its result got a 200.
var outcomes = map[string][]string{
	actOK: {"completed"}, actFail: {"failed", "cancelled"}, actFatal: {"failed", "cancelled"}, actAfter: {"failed", "cancelled"},
	childFailed: {"failed", "cancelled"}, actSnooze: {"snoozed", "cancelled"}, actReceive: {"snoozed", "cancelled"},
	actCall: {"snoozed", "cancelled"},
}

// checkStored: an attempt has the outcome that was stored for it, whatever those have that were settled with it.
func (f *facts) checkStored(found func(_, _, _ string), batch bool) {
	f.each(func(j *client.Job) {
		for _, r := range f.runs[j.JobID] {
			if expected := outcomes[r.How]; r.Pull && r.With > 0 == batch && slices.Contains(r.Settled, 200) && expected != nil {
				for _, a := range j.Attempts {
					if a.Attempt == r.Attempt && !slices.Contains(expected, a.Outcome) {
						found(f.name(j.JobID), fmt.Sprintf("attempt %d is %v: its result %q got a 200", r.Attempt, expected, r.How), fmt.Sprintf("%q %s", a.Outcome, a.ErrorCode))
					}
				}
			}
		}
	})
}
