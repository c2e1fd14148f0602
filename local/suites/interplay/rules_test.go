package interplay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// A Rule is one promise. It holds for every program, however long a machine takes: rules compare orders and states,
// and no rule has a time that a slow machine exceeds.
type Rule struct {
	Name  string
	Quote string // the sentence of the docs
	In    string // where it is
	check func(*facts, func(subject, expected, actual string))
}

// Violation is a promise that a program saw broken.
type Violation struct {
	Rule     *Rule
	Subject  string
	Expected string
	Actual   string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s\n  expected: %s\n  actual:   %s\n  %s: %q", v.Rule.Name, v.Subject, v.Expected, v.Actual, v.Rule.In, v.Rule.Quote)
}

// Check returns all violations in a record.
func Check(r *Record) (found []Violation) {
	f := factsOf(r)
	for i := range Rules {
		rule := &Rules[i]
		rule.check(f, func(subject, expected, actual string) {
			found = append(found, Violation{rule, subject, expected, actual})
		})
	}
	return found
}

// Rules are all rules.
var Rules = slices.Concat(lifeRules, runRules, callRules, togetherRules, alertRules, stepRules, keyRules, limitRules, graphRules, groupRules, viewRules, streamRules, mailRules,
	reportRules, ownerRules, retentionRules)

var lifeRules = []Rule{
	{
		"accepted", "A 202 means that the job is stored and reaches exactly one terminal state.", "openapi.yaml, submitJob",
		func(f *facts, found func(_, _, _ string)) {
			for _, name := range f.names {
				if s := f.Specs[name]; s.Made && f.Jobs[s.ID] == nil && !f.deleted(s.ID) {
					found(name+" "+s.ID, "the job exists: it was accepted, and no command deleted it", "GET answers 404")
				}
			}
		},
	},
	{
		"nothing else", "If the transaction rolls back, there is no job.", "docs/outbox.md",
		func(f *facts, found func(_, _, _ string)) {
			for id, committed := range f.Committed {
				if j := f.Jobs[id]; !committed && j != nil {
					found(id, "no job: its transaction was rolled back", "it is "+j.Status)
				}
			}
			f.each(func(j *client.Job) {
				if f.spec(j.JobID) == nil && !slices.ContainsFunc(j.Tags, follows) && j.JobType != alertType {
					found(f.name(j.JobID), "every job was asked for", fmt.Sprintf("no request is known; tags %v", j.Tags))
				}
			})
			for id, list := range f.runs {
				if f.Jobs[id] == nil && !f.deleted(id) {
					found(id, "only jobs run", fmt.Sprintf("%s ran, and there is no such job", list[0].Name))
				}
			}
		},
	},
	{
		"ends", "Every job accepted with a 2xx reaches exactly one terminal state.", "docs/design.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, j := range f.Open {
				found(f.name(j.JobID), "it ends, once no pause and no limit of the program is left", fmt.Sprintf("%s, blocked by %v", j.Status, j.BlockedBy))
			}
			f.each(func(j *client.Job) {
				if !j.Terminal() && len(f.Open) == 0 {
					found(f.name(j.JobID), "it has ended", j.Status)
				}
			})
		},
	},
	{
		"named", "`blockedBy` in `GET /api/jobs/{id}` … name what a job waits for", "docs/scheduling.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, j := range f.Open {
				if j.Status == client.Pending && len(j.BlockedBy) == 0 {
					found(f.name(j.JobID), "a reason for which it waits", "PENDING, and blockedBy is empty")
				}
			}
		},
	},
	{
		"history", "FAILED, CANCELLED ── retry command ──▶ PENDING", "docs/design.md, the states of a job",
		(*facts).checkHistory,
	},
	{
		"completed", "If the handler completes all the same, the job is COMPLETED; every other outcome gives CANCELLED.", "docs/design.md",
		(*facts).checkCompleted,
	},
	{
		"failed", "A failed job is retried `maxRetryCount` times", "docs/scheduling.md",
		(*facts).checkFailed,
	},
	{
		"cancelled", "A job that waits is CANCELLED at once.", "openapi.yaml, cancelJob",
		(*facts).checkCancelled,
	},
	{
		"cancel holds", "A job, command or callback that got a 2xx is stored and acted on, whatever fails afterwards.", "docs/design.md",
		(*facts).checkCancelHolds,
	},
	{
		"changed", "When the scheduler has applied the new values, the job shows them all at once.", "docs/scheduling.md",
		(*facts).checkChanged,
	},
	{
		"again", "`runAgainOf` and `runAgainAs` link the two jobs.", "docs/scheduling.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, a := range f.Asked {
				old, ok := strings.CutSuffix(strings.TrimPrefix(a.Path, "/api/jobs/"), "/run-again")
				if !ok || a.Status != 202 || len(a.Jobs) == 0 {
					continue
				}
				if j := f.Jobs[a.Jobs[0]]; j != nil && j.RunAgainOf != old {
					found(f.name(j.JobID), "runAgainOf is "+old, fmt.Sprintf("%q", j.RunAgainOf))
				}
			}
		},
	},
}

func follows(tag string) bool { return strings.HasPrefix(tag, "follows-") }

// edges are the arrows of the diagram, and those of a fan-out, which no worker runs.
var edges = map[string][]string{
	"":          {"SCHEDULED", "PENDING", "QUEUED", "WAITING", "CANCELLED"},
	"SCHEDULED": {"PENDING", "SCHEDULED", "CANCELLED", "QUEUED"},
	"PENDING":   {"QUEUED", "SCHEDULED", "PENDING", "CANCELLED", "FAILED", "WAITING", "COMPLETED"},
	"QUEUED":    {"RUNNING", "COMPLETED", "WAITING", "PENDING", "RETRYING", "SCHEDULED", "FAILED", "CANCELLED", "QUEUED"},
	"RUNNING":   {"COMPLETED", "WAITING", "PENDING", "RETRYING", "SCHEDULED", "FAILED", "CANCELLED", "QUEUED", "RUNNING"},
	"WAITING":   {"COMPLETED", "FAILED", "RETRYING", "CANCELLED", "WAITING", "PENDING"},
	"RETRYING":  {"PENDING", "CANCELLED", "RETRYING", "QUEUED"},
	"FAILED":    {"PENDING", "WAITING"},
	"CANCELLED": {"PENDING", "WAITING"},
}

func (f *facts) checkHistory(found func(_, _, _ string)) {
	f.each(func(j *client.Job) {
		for i, m := range j.History {
			before := client.Move{}
			if i > 0 {
				before = j.History[i-1]
			}
			where := fmt.Sprintf("entry %d of the history of %s", i, f.name(j.JobID))
			refused := m.From == m.To && strings.Contains(m.Reason, "refused")
			switch {
			case len(j.History) == 100 && i == 0: // older ones are not shown
			case m.From != before.To:
				found(where, "it goes on from "+before.To, "from "+m.From)
			case !slices.Contains(edges[m.From], m.To) && !refused:
				found(where, "an arrow of the diagram", m.From+" to "+m.To)
			case m.Attempt < before.Attempt || m.Attempt > before.Attempt+1:
				found(where, fmt.Sprintf("attempt %d or the next", before.Attempt), fmt.Sprint(m.Attempt))
			}
		}
		if n := len(j.History); n > 0 && j.History[n-1].To != j.Status {
			found(f.name(j.JobID), "the status is that of the last entry of the history, "+j.History[n-1].To, j.Status)
		}
	})
}

// outcome returns the last attempt of a job that the witness saw; nil: it is not the job's last.
func (f *facts) outcome(j *client.Job) *Run {
	list := f.runs[j.JobID]
	if len(list) == 0 || list[len(list)-1].Attempt != j.Attempt {
		return nil
	}
	return list[len(list)-1]
}

// stored returns what an outside system has reported of an attempt, and was answered with 200.
func (f *facts) stored(r *Run) *Back {
	for _, b := range f.backs[r.Job] {
		if b.Attempt == r.Attempt && b.Answer == 200 && b.Status != "PROGRESS" {
			return b
		}
	}
	return nil
}

// endedOtherwise reports whether a callback came while the end of its attempt was on its way to the API.
func endedOtherwise(j *client.Job, b *Back) bool {
	for _, a := range j.Attempts {
		if a.Attempt == b.Attempt && a.FinishedAt != nil && a.FinishedAt.Sub(b.At).Abs() < lateness {
			return true
		}
	}
	return false
}

func (f *facts) checkCompleted(found func(_, _, _ string)) {
	f.each(func(j *client.Job) {
		if !witnessed(j) {
			return
		}
		r := f.outcome(j)
		if j.Status == client.Completed && r == nil {
			found(f.name(j.JobID), fmt.Sprintf("attempt %d ran", j.Attempt), fmt.Sprintf("COMPLETED, and the witness saw %d starts", len(f.runs[j.JobID])))
			return
		}
		if r == nil {
			return
		}
		b := f.stored(r)
		completed := r.How == actOK || b != nil && b.Status == client.Completed
		if j.Status == client.Completed && !completed {
			found(f.name(j.JobID), "not COMPLETED: its last attempt ended as "+r.How, "COMPLETED")
		}
		if r.Pull && r.How == actOK && slices.Contains(r.Settled, 200) && j.Status != client.Completed {
			found(f.name(j.JobID), "COMPLETED: the settle of its last attempt was answered 200", j.Status)
		}
		if b != nil && b.Status == client.Completed && j.Status != client.Completed &&
			!f.disturbed(r.Start, b.At.Add(20*time.Second)) && !endedOtherwise(j, b) {
			found(f.name(j.JobID), "COMPLETED: the callback for its last attempt was answered 200", j.Status)
		}
	})
}

func (f *facts) checkFailed(found func(_, _, _ string)) {
	f.each(func(j *client.Job) {
		lives := f.lives(j)
		if len(lives) == 0 || len(j.History) == 100 {
			return
		}
		retried := 0
		for _, m := range lives[len(lives)-1].moves {
			if m.To == client.Retrying && m.From != client.Retrying {
				retried++
			}
		}
		if retried != j.RetryCount {
			found(f.name(j.JobID), fmt.Sprintf("retryCount %d: so often it became RETRYING", retried), fmt.Sprint(j.RetryCount))
		}
		if j.RetryCount > j.MaxRetryCount {
			found(f.name(j.JobID), fmt.Sprintf("at most %d retries", j.MaxRetryCount), fmt.Sprint(j.RetryCount))
		}
		r := f.outcome(j)
		if j.Status != client.Failed || r == nil || !witnessed(j) {
			return
		}
		short := f.short(j.JobID, r)
		waits := j.JobType == "EXTERNAL" // its callback decides, whatever the answer
		if r.How == actOK && !waits && !(short && code(j) == "WORKER.TIMEOUT") {
			found(f.name(j.JobID), "COMPLETED: its last attempt succeeded", "FAILED "+code(j))
		}
		retryable := r.How == actFail || r.How == actDrop || r.How == actAfter || r.How == actHang
		if retryable && j.RetryCount < j.MaxRetryCount && !f.groupEnds(j) && code(j) != "WORKER.LOST" {
			found(f.name(j.JobID), fmt.Sprintf("%d retries", j.MaxRetryCount), fmt.Sprintf("FAILED after %d: %s", j.RetryCount, code(j)))
		}
	})
}

func code(j *client.Job) string {
	if j.LastError == nil {
		return ""
	}
	return j.LastError.ErrorCode
}

// groupEnds reports whether the batch or flow of a job may have expired, or be cancelled: then nothing is retried. A retry
// takes an expiresAt away that has passed.
func (f *facts) groupEnds(j *client.Job) bool {
	for _, g := range f.groups() {
		for _, s := range f.Program.Steps {
			if g.id == j.BatchID && s.Ms > 0 && g.name == fmt.Sprintf("s%d", s.N) {
				return true
			}
		}
	}
	return len(f.may(j.JobID, "cancel")) > 0
}

func (f *facts) checkCancelled(found func(_, _, _ string)) {
	f.each(func(j *client.Job) {
		if j.Status != client.Cancelled {
			return
		}
		why := code(j)
		spec := f.spec(j.JobID)
		overlap := j.Schedule != nil // which may cancel it
		switch {
		case why == "SCHEDULER.DEPENDENCY_FAILED" && len(j.After) > 0:
		case why == "SCHEDULER.EXPIRED" && (j.ExpiresAt != nil || spec == nil || spec.Job.ExpiresMs > 0):
		case f.groupEnds(j) || overlap:
		case j.ForEach != nil: // one of its elements was
		case j.Element != nil && f.elementsEnd(j):
		case j.ParentID != "" && slices.ContainsFunc(j.History, byCaller): // callRules
		default:
			found(f.name(j.JobID), "an end with a cause", "CANCELLED "+why)
		}
	})
}

// elementsEnd reports whether the fan-out of an element was cancelled.
func (f *facts) elementsEnd(j *client.Job) bool {
	return len(f.may(j.Element.FanOutID, "cancel")) > 0
}

func (f *facts) checkCancelHolds(found func(_, _, _ string)) {
	for _, a := range f.asks["cancel"] {
		if !single(a) || a.Status != 202 || len(a.Jobs) == 0 {
			continue
		}
		j := f.Jobs[a.Jobs[0]]
		if j == nil {
			continue
		}
		for _, l := range f.lives(j) {
			// A retry after the cancel begins another life.
			if l.from.After(a.Sent) && l.revived || len(l.runs) == 0 || !l.end.At.IsZero() && l.end.At.Before(a.Sent) {
				continue
			}
			for _, m := range l.moves {
				at := a.At.Add(cancelReaches)
				if sent(m) && m.At.After(at) && !f.disturbed(a.Sent.Add(-aftermath), m.At) {
					found(f.name(j.JobID), "no further attempt: its cancel was accepted at "+clock(a.At), fmt.Sprintf("attempt %d was sent at %s", m.Attempt, clock(m.At)))
				}
			}
		}
	}
}

// cancelReaches is how long an accepted cancel may be on its way on a loaded machine. A cancel that is lost is repeated
// after 10 s.
const cancelReaches = 6 * time.Second

// aftermath is how long after a fault a consumer group may still wait for a member that was killed.
const aftermath = 15 * time.Second

// checkChanged: a PATCH is applied as a whole, or not at all.
func (f *facts) checkChanged(found func(_, _, _ string)) {
	for _, a := range f.asks["patch"] {
		if a.Status != 202 || len(a.Jobs) == 0 || len(f.may(a.Jobs[0], "patch")) > 1 || f.Jobs[a.Jobs[0]] == nil {
			continue
		}
		j := f.Jobs[a.Jobs[0]]
		var change struct {
			Priority, MaxRetryCount *int
			Tags                    []string
		}
		_ = json.Unmarshal(a.Body, &change)
		applied := slices.ContainsFunc(j.History, func(m client.Move) bool { return m.Reason == "change" })
		same := (change.Priority == nil || *change.Priority == j.Priority) && (change.Tags == nil || slices.Equal(change.Tags, j.Tags))
		// No job has such values from its submit, but run-again may have given them to it.
		shows := (change.Priority != nil || change.Tags != nil) && j.RunAgainOf == ""
		wrong := applied && (!same || change.MaxRetryCount != nil && *change.MaxRetryCount != j.MaxRetryCount) || !applied && same && shows
		held := j.Debounce != nil // it is changed before the scheduler knows it
		if wrong && !held {
			found(f.name(j.JobID), fmt.Sprintf("the new values if its history has the change, which is %v", applied),
				fmt.Sprintf("%s was accepted; priority %d, tags %v, maxRetryCount %d", a.Body, j.Priority, j.Tags, j.MaxRetryCount))
		}
	}
}
