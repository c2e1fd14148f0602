package kill

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"
)

// limited is a subject under a control, and the history of its limits.
type limited struct {
	subject string // as in the path: type/WITNESS
	of      func(*shape) bool
	phases  []phase
}

// phase is a limit of concurrent runs; it may have been in force from the time of its request.
type phase struct {
	most            int
	asked, replaced time.Time // zero: in force to the end
	startsPerSecond float64
}

const noLimit = math.MaxInt

// control is a requested control of a subject.
type control struct {
	Paused          bool     `json:"paused"`
	MaxRunning      *int     `json:"maxRunning"`
	StartsPerSecond *float64 `json:"startsPerSecond"`
}

func atMost(n int) control            { return control{MaxRunning: &n} }
func atMostASecond(r float64) control { return control{StartsPerSecond: &r} }

func (c control) phase(asked time.Time) phase {
	p := phase{most: noLimit, asked: asked}
	if c.MaxRunning != nil {
		p.most = *c.MaxRunning
	}
	if c.Paused {
		p.most = 0
	}
	if c.StartsPerSecond != nil {
		p.startsPerSecond = *c.StartsPerSecond
	}
	return p
}

// set sets a control, and returns once the scheduler has applied it.
func (h *fixture) set(ctx context.Context, l *limited, c control) {
	h.t.Helper()
	body, err := json.Marshal(c)
	must(h.t, err)
	asked := time.Now()
	must(h.t, within(ctx, recoverWithin, func(ctx context.Context) error {
		var answer struct{ Applied bool }
		_, err := h.api.Do(ctx, http.MethodPut, "/api/controls/"+l.subject, "application/json", body, &answer)
		if err == nil && !answer.Applied {
			err = fmt.Errorf("the control of %s is not applied", l.subject)
		}
		return err
	}))
	if n := len(l.phases); n > 0 {
		l.phases[n-1].replaced = time.Now()
	}
	l.phases = append(l.phases, c.phase(asked))
}

// slack is how long a transaction may take that begins under one control and ends under the next.
const slack = time.Second

// mostAt returns how many attempts may run once the last of them was dispatched at an instant.
func (l *limited) mostAt(sent time.Time) int {
	most := -1
	for _, p := range l.phases {
		if !p.asked.After(sent.Add(slack)) && (p.replaced.IsZero() || !p.replaced.Before(sent)) {
			most = max(most, p.most)
		}
	}
	if most < 0 {
		return noLimit // before the first limit
	}
	return most
}

// sent is a run and the time of its dispatch.
type sent struct {
	run
	at time.Time
}

// runsOf returns all runs under the control, in the order of their starts.
func (e *evidence) runsOf(l *limited) (all []sent) {
	for id, runs := range e.ran {
		job := e.jobs[id]
		if job == nil || e.orders[job.key()] == nil || !l.of(e.orders[job.key()].shape) {
			continue
		}
		for _, r := range runs {
			all = append(all, sent{r, job.sentAt(r.attempt)})
		}
	}
	slices.SortFunc(all, func(a, b sent) int { return a.start.Compare(b.start) })
	return all
}

// sentAt returns when an attempt was dispatched, by the scheduler's clock.
func (s *shown) sentAt(attempt int) time.Time {
	i := slices.IndexFunc(s.History, func(m shownMove) bool { return m.To == "QUEUED" && m.Attempt == attempt && m.From != m.To })
	if i < 0 {
		return time.Time{}
	}
	return s.History[i].At
}

// checkLimit: whenever an attempt begins, the witness has seen no more running attempts than the limit that was in
// force when the last of them was dispatched. It returns the most there ever were.
func (e *evidence) checkLimit(l *limited) (most int) {
	var working []sent
	for _, r := range e.runsOf(l) {
		working = slices.DeleteFunc(working, func(w sent) bool { return !w.end.IsZero() && !w.end.After(r.start) })
		working = append(working, r)
		last := slices.MaxFunc(working, func(a, b sent) int { return a.at.Compare(b.at) })
		if limit := l.mostAt(last.at); len(working) > limit {
			e.find(r.job, "attempt %d began at %s as number %d at work of %s, %d may", r.attempt, clock(r.start), len(working), l.subject, limit)
		}
		most = max(most, len(working))
	}
	return most
}

// checkRate: no second has more starts than the limit, plus the differences between the delays from dispatch to
// start: one attempt may have been slow and the next ones quick.
func (e *evidence) checkRate(l *limited) (most int, jitter time.Duration) {
	runs := e.runsOf(l)
	if len(runs) == 0 {
		return 0, 0
	}
	quickest, slowest := time.Duration(math.MaxInt64), time.Duration(0)
	for _, r := range runs {
		quickest, slowest = min(quickest, r.start.Sub(r.at)), max(slowest, r.start.Sub(r.at))
	}
	jitter = slowest - quickest
	perSecond := l.phases[0].startsPerSecond
	allowed := int(math.Ceil(perSecond * (time.Second + jitter).Seconds()))
	from := 0
	for i, r := range runs {
		for r.start.Sub(runs[from].start) >= time.Second {
			from++
		}
		if n := i - from + 1; n > allowed {
			e.find(r.job, "attempt %d began at %s as the start number %d of %s in a second, %d may", r.attempt, clock(r.start), n, l.subject, allowed)
		}
		most = max(most, i-from+1)
	}
	return most, jitter
}
