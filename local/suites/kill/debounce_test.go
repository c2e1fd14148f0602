package kill

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
)

const (
	debounceTag    = "debounced " // begins the tags of debounced jobs
	debounceDelay  = 700 * time.Millisecond
	debounceMost   = 3 * time.Second
	releasedWithin = 30 * time.Second // of its time, while gateways and PostgreSQL are killed
)

// merging is a request with a debounce key. Its content, the tag and the key of the payload, is its own.
type merging struct {
	key, content    string
	id              string // empty: unanswered, though it may have been accepted
	asked, accepted time.Time
}

// debounce returns a function that submits a burst of requests with a key, some of which last longer than a job may be
// held, and waits until the job of the burst is due.
func (l *load) debounce(key string) func(context.Context, *rand.Rand) {
	return func(ctx context.Context, rnd *rand.Rand) {
		for range 1 + rnd.IntN(20) {
			l.mu.Lock()
			l.number++
			m := &merging{key: key, content: fmt.Sprintf("%s%s.%d", debounceTag, key, l.number), asked: time.Now()}
			l.merging = append(l.merging, m)
			l.mu.Unlock()
			body, err := json.Marshal(map[string]any{
				"jobType": "WITNESS", "tags": []string{m.content}, "idempotencyKey": m.content, "payload": map[string]any{"key": m.content},
				"debounce": map[string]any{"key": key, "delayMs": debounceDelay.Milliseconds(), "maxDelayMs": debounceMost.Milliseconds()},
			})
			if err != nil {
				panic(err) // it is JSON
			}
			var answer client.Accepted
			if l.ask(ctx, true, "/api/jobs", "application/json", body, &answer) {
				l.mu.Lock()
				m.id, m.accepted = answer.JobID, time.Now()
				l.mu.Unlock()
			}
			if !retry.Pause(ctx, rand.N(debounceDelay/2)) {
				return
			}
		}
		retry.Pause(ctx, 2*debounceDelay)
	}
}

// takeDebounced removes debounced jobs from the evidence and checks them.
func (e *evidence) takeDebounced(ctx context.Context, database string) {
	late, err := texts(ctx, database, `
		select job_id || ' was released ' || released_at - run_at || ' after it was due' from jobs
		where policies -> 'debounce' is not null and released_at > run_at + $1::text::interval`, releasedWithin.String())
	if err != nil {
		e.find("", "the releases cannot be read: %v", err)
	}
	for _, text := range late {
		e.find("", "%s", text)
	}
	jobs := map[string]*shown{}
	for id, job := range e.jobs {
		if strings.HasPrefix(job.key(), debounceTag) {
			jobs[id] = job
		}
	}
	e.checkDebounced(e.load.merging, jobs)
	for id := range jobs {
		delete(e.jobs, id)
		delete(e.ran, id)
	}
}

// checkDebounced: each burst is one job, which does what the last request of the burst asked for, and not too late.
func (e *evidence) checkDebounced(requests []*merging, jobs map[string]*shown) {
	byContent, merged := map[string]*merging{}, map[string][]*merging{}
	for _, m := range requests {
		byContent[m.content] = m
		if m.id == "" {
			continue
		}
		if merged[m.id] = append(merged[m.id], m); jobs[m.id] == nil {
			e.find(m.id, "%q was accepted at %s and is not there", m.content, clock(m.accepted))
		}
	}
	for id, job := range jobs {
		last := byContent[job.key()]
		if last == nil || last.id != "" && last.id != id {
			e.find(id, "has the content %q, which was not submitted for it", job.key())
			continue
		}
		e.checkHistory(job)
		e.checkMerged(job, last, merged[id])
	}
	for i, after := range requests {
		for _, before := range requests[:i] {
			if a := jobs[before.id]; a != nil && after.id != "" && after.id != before.id && after.key == before.key &&
				before.accepted.Before(after.asked) && after.accepted.Before(*a.RunAt) {
				e.find(after.id, "was made at %s by %q, while %s was held", clock(after.accepted), after.content, a.JobID)
			}
		}
	}
}

// checkMerged checks a job that did what the request last asked for, and the requests that got its id.
func (e *evidence) checkMerged(job *shown, last *merging, merged []*merging) {
	runs := e.ran[job.JobID]
	if job.Status != completed && e.lostByUs(job) <= maxLost || len(runs) == 0 {
		e.find(job.JobID, "was debounced, and is %s after %d runs", job.Status, len(runs))
	}
	if most := job.CreatedAt.Add(debounceMost); job.RunAt == nil || job.RunAt.After(most) {
		e.find(job.JobID, "is due at %v, and may be held until %s", job.RunAt, clock(most))
	}
	for _, r := range runs {
		if r.key != last.content || job.RunAt != nil && r.start.Before(*job.RunAt) {
			e.find(job.JobID, "ran %q at %s, and is %q for %v", r.key, clock(r.start), last.content, job.RunAt)
		}
	}
	for _, m := range merged {
		switch {
		case len(runs) > 0 && m.asked.After(runs[0].start):
			e.find(job.JobID, "had started when %q was asked for", m.content)
		case last.id != "" && m.asked.After(last.accepted):
			e.find(job.JobID, "did %q, and %q came later", last.content, m.content)
		}
	}
}

func TestTheCheckOfDebouncedJobsFindsEachViolation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lie  func(e *evidence, requests []*merging, jobs map[string]*shown)
		find string // in one of the findings; empty: there must be none
	}{
		"nothing": {func(*evidence, []*merging, map[string]*shown) {}, ""},
		"two requests at once, either of which may be the last": {func(_ *evidence, requests []*merging, _ map[string]*shown) {
			requests[0].accepted = at(3)
		}, ""},
		"the last request was not answered": {func(_ *evidence, requests []*merging, _ map[string]*shown) {
			requests[1].id, requests[1].accepted = "", time.Time{}
		}, ""},
		"an accepted request has no job": {
			func(_ *evidence, _ []*merging, jobs map[string]*shown) { delete(jobs, "second") }, "is not there",
		},
		"a job that was not submitted": {
			func(_ *evidence, _ []*merging, jobs map[string]*shown) {
				jobs["other"] = debouncedShown("other", "x", 9)
			}, "not submitted for it",
		},
		"a job has another job's content": {func(_ *evidence, requests []*merging, jobs map[string]*shown) {
			jobs["first"].Tags = []string{requests[2].content}
		}, "not submitted for it"},
		"an older request won": {func(e *evidence, requests []*merging, jobs map[string]*shown) {
			jobs["first"].Tags[0], e.ran["first"][0].key = requests[0].content, requests[0].content
		}, "came later"},
		"it ran what an older request asked for": {func(e *evidence, requests []*merging, _ map[string]*shown) {
			e.ran["first"][0].key = requests[0].content
		}, "ran"},
		"it ran before it was due": {func(e *evidence, _ []*merging, _ map[string]*shown) { e.ran["first"][0].start = at(3) }, "ran"},
		"it never ran":             {func(e *evidence, _ []*merging, _ map[string]*shown) { delete(e.ran, "first") }, "after 0 runs"},
		"it has not ended": {
			func(_ *evidence, _ []*merging, jobs map[string]*shown) { jobs["first"].Status = "SCHEDULED" }, "is SCHEDULED",
		},
		"it was held too long": {func(e *evidence, _ []*merging, jobs map[string]*shown) {
			*jobs["second"].RunAt, e.ran["second"][0].start = at(15), at(15)
		}, "may be held until"},
		"a request joined a job that had started": {func(_ *evidence, requests []*merging, jobs map[string]*shown) {
			requests[2].id, jobs["second"].Tags[0] = "first", requests[3].content
		}, "had started"},
		"one burst made two jobs": {func(_ *evidence, requests []*merging, _ map[string]*shown) {
			requests[2].asked, requests[2].accepted = at(3), at(3)
		}, "was held"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, requests, jobs := debouncedTruth()
			c.lie(e, requests, jobs)
			e.checkDebounced(requests, jobs)
			e.wants(t, c.find)
		})
	}
}

// debouncedTruth returns evidence of two bursts of two requests each.
func debouncedTruth() (*evidence, []*merging, map[string]*shown) {
	requests := []*merging{
		{key: "d", content: debounceTag + "d.1", id: "first", asked: at(0), accepted: at(1)},
		{key: "d", content: debounceTag + "d.2", id: "first", asked: at(2), accepted: at(3)},
		{key: "d", content: debounceTag + "d.3", id: "second", asked: at(8), accepted: at(9)},
		{key: "d", content: debounceTag + "d.4", id: "second", asked: at(9), accepted: at(10)},
	}
	jobs := map[string]*shown{
		"first": debouncedShown("first", requests[1].content, 1), "second": debouncedShown("second", requests[3].content, 8),
	}
	e := &evidence{chaos: &chaos{}, ran: map[string][]run{}}
	for id, job := range jobs {
		e.ran[id] = []run{{job: id, attempt: 1, key: job.key(), start: *job.RunAt, end: *job.RunAt}}
	}
	return e, requests, jobs
}

func debouncedShown(id, content string, created int) *shown {
	due := at(created + 3)
	job := &shown{
		JobID: id, Status: completed, Attempt: 1, Tags: []string{content}, CreatedAt: at(created), RunAt: &due,
		Attempts: []shownAttempt{{Attempt: 1, Outcome: completed}},
	}
	job.move("", "SCHEDULED", 0)
	job.move("SCHEDULED", "PENDING", 0)
	job.move("PENDING", "QUEUED", 1)
	job.move("QUEUED", completed, 1)
	return job
}
