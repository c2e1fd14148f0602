package kill

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/local/suites/kill/witness"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// check checks the evidence against every promise.
func (e *evidence) check() {
	e.checkAccepted()
	for id, job := range e.jobs {
		order := e.orders[job.key()]
		if order == nil {
			e.find(id, "this job was not submitted: tags %v", job.Tags)
			continue
		}
		e.checkEnd(job, order)
		e.checkHistory(job)
		e.checkCommands(job, order)
		e.checkCallbacks(job, order)
		e.checkCalls(job, order)
		if order.shape.builtin == "" {
			e.checkRuns(job, order)
			e.checkCounts(job)
		}
	}
	e.checkDeadLetters()
	e.checkFlood()
}

// checkAccepted: each accepted job exists once; no other job ran.
func (e *evidence) checkAccepted() {
	for _, o := range e.orders {
		switch {
		case o.id == "":
		case e.jobs[o.id] == nil:
			e.find(o.id, "%s was accepted at %s and is not there", o.key, clock(o.accepted))
		case e.jobs[o.id].key() != o.key:
			e.find(o.id, "accepted as %s, and is %s", o.key, e.jobs[o.id].key())
		}
	}
	ids := map[string][]string{}
	for id, job := range e.jobs {
		ids[job.key()] = append(ids[job.key()], id)
	}
	for key, list := range ids {
		if len(list) > 1 {
			e.find(list[0], "%s is there as %d jobs: %v", key, len(list), list)
		}
	}
	for id, runs := range e.ran {
		if job := e.jobs[id]; job == nil || runs[0].key != job.key() {
			e.find(id, "ran, with key %s, and was not submitted so", runs[0].key)
		}
	}
}

// maxLost is how often a job may lose its worker before it fails.
const maxLost = 3

// lostByUs counts the attempts whose workers the test killed or froze. A worker killed by another job is no excuse.
func (e *evidence) lostByUs(job *shown) (n int) {
	for _, a := range job.Attempts {
		if (e.pulled(job.JobID) || e.paired) && a.Outcome == "lost" { // checkPulledRun and checkRun find the others
			n++
		} else if life := e.lives[e.processes[a.WorkerID]]; a.Outcome == "lost" && (life.byUs || len(life.frozen) > 0) {
			n++
		}
	}
	return n
}

// checkEnd: the job has ended as its shape may end.
func (e *evidence) checkEnd(job *shown, o *order) {
	id := job.JobID
	if !job.terminal() {
		e.find(id, "has not ended: %s", job.Status)
		return
	}
	if job.CancelRequestedAt != nil {
		e.find(id, "is %s and a cancel still waits for its answer", job.Status)
	}
	if job.Status == failed && job.LastError == nil {
		e.find(id, "is FAILED without an error")
		return
	}
	if job.Status == failed && job.LastError.ErrorCode == "WORKER.LOST" && e.lostByUs(job) > maxLost {
		return
	}
	if e.calledALostJob(job, o) {
		return
	}
	if !slices.Contains(o.shape.ends, job.Status) && !e.sleptPastItsTime(job, o) {
		e.find(id, "a job that %s is %s", o.shape.name, job.Status)
	}
	if job.Status == failed && job.LastError.ErrorCode != o.shape.code {
		e.find(id, "a job that %s has failed with %s", o.shape.name, job.LastError.ErrorCode)
	}
	if job.Status == canceled && o.shape.cancelIn == 0 && !o.shape.operated {
		e.find(id, "is CANCELLED without a cancel")
	}
}

// sleptPastItsTime: in a process that was frozen, a handler may finish and its timeout pass at the same instant;
// either may come first.
func (e *evidence) sleptPastItsTime(job *shown, o *order) bool {
	return job.Status == completed && o.shape.code == "WORKER.TIMEOUT" &&
		slices.ContainsFunc(e.ran[job.JobID], func(r run) bool {
			return r.attempt == job.Attempt && e.frozeDuring(r.process, r.start, r.end)
		})
}

// edges are the transitions of the published diagram.
var edges = map[string][]string{
	"":          {"SCHEDULED", "PENDING", "QUEUED", "WAITING"}, // WAITING: a fan-out
	"SCHEDULED": {"PENDING", canceled},
	"PENDING":   {"QUEUED", canceled},
	"QUEUED":    {"RUNNING", "WAITING", completed, "RETRYING", "SCHEDULED", "PENDING", failed, canceled},
	"RUNNING":   {"WAITING", completed, "RETRYING", "SCHEDULED", "PENDING", failed, canceled},
	"WAITING":   {completed, "RETRYING", "PENDING", failed, canceled},
	"RETRYING":  {"PENDING", canceled},
	failed:      {"PENDING"},
	canceled:    {"PENDING"},
	completed:   {},
}

// checkHistory: the transitions follow the diagram, and each attempt has one outcome. So the job has ended once, and
// once more for each retry command.
func (e *evidence) checkHistory(job *shown) {
	status, attempt := "", 0
	for _, m := range job.History {
		if m.From != status && len(job.History) < 100 {
			e.find(job.JobID, "moves from %q at %s, and was %q", m.From, clock(m.At), status)
		}
		if m.To != m.From && !slices.Contains(edges[m.From], m.To) {
			e.find(job.JobID, "moves from %q to %s", m.From, m.To)
		}
		if (m.From == failed || m.From == canceled) && m.To != m.From && m.By != "client" && !(m.By == "cron" && job.key() == flowKey) {
			e.find(job.JobID, "leaves %s by %s", m.From, m.By)
		}
		if m.Attempt < attempt {
			e.find(job.JobID, "goes back to attempt %d from %d", m.Attempt, attempt)
		}
		status, attempt = m.To, m.Attempt
	}
	if status != job.Status || attempt != job.Attempt {
		e.find(job.JobID, "is %s after attempt %d, its history ends with %s after %d", job.Status, job.Attempt, status, attempt)
	}
	for n := 1; n <= job.Attempt; n++ {
		if a := job.attempt(n); a == nil || a.Outcome == "" {
			e.find(job.JobID, "attempt %d has no outcome", n)
		} else if a.Outcome == "completed" && n < job.Attempt {
			e.find(job.JobID, "attempt %d completed, and there was another", n)
		}
	}
}

// checkCommands: each accepted command is in the history once.
func (e *evidence) checkCommands(job *shown, o *order) {
	answered := map[string]int{}
	for _, m := range job.History {
		if m.By == "client" {
			command, _, _ := strings.Cut(m.Reason, " ")
			answered[command]++
		}
	}
	for _, c := range o.commands {
		if answered[c.command]--; answered[c.command] < 0 {
			e.find(job.JobID, "its %s of %s was kept and has no answer", c.command, clock(c.at))
		}
	}
	for command, n := range answered {
		if n > 1 || n == 1 && (o.shape.cancelIn == 0 && !o.shape.operated && command == "cancel" || !o.shape.redrive && command == "retry") {
			e.find(job.JobID, "answers %d times more to %s than it was asked", n, command)
		}
	}
	if !o.cancelled.IsZero() && job.Status != canceled {
		e.find(job.JobID, "was CANCELLED at %s and is %s", clock(o.cancelled), job.Status)
	}
}

// checkRuns compares what the witness saw with what the API shows.
func (e *evidence) checkRuns(job *shown, o *order) {
	runs := e.ran[job.JobID]
	e.checkStarts(job.JobID, runs)
	for i, r := range runs {
		if i > 0 && !e.over(runs[i-1], r.start, o) {
			e.find(job.JobID, "attempt %d began at %s, before the end of attempt %d", r.attempt, clock(r.start), runs[i-1].attempt)
		}
		if job.RunAt != nil && r.start.Before(*job.RunAt) {
			e.find(job.JobID, "attempt %d began at %s, before its time", r.attempt, clock(r.start))
		}
		if !o.cancelled.IsZero() && r.start.After(o.cancelled) && !e.frozeDuring(r.process, o.cancelled.Add(-frozenFor), r.start) &&
			!(e.pulled(job.JobID) && e.cutOff(o.cancelled.Add(-frozenFor), r.start)) {
			e.find(job.JobID, "attempt %d began at %s, after the API had shown CANCELLED", r.attempt, clock(r.start))
		}
		if e.pulled(job.JobID) {
			e.checkPulledRun(job, r)
		} else {
			e.checkRun(job, o, r)
		}
	}
	for _, a := range job.Attempts {
		seen := slices.ContainsFunc(runs, func(r run) bool { return r.attempt == a.Attempt })
		if e.pulled(job.JobID) && a.ErrorCode == "WORKER.TIMEOUT" { // it may have been on its way to a pull worker that was killed
			continue
		}
		if !seen && slices.Contains([]string{"completed", "failed", "snoozed"}, a.Outcome) {
			e.find(job.JobID, "attempt %d %s, and never started", a.Attempt, a.Outcome)
		}
	}
}

// checkStarts: no attempt was started twice. It sorts the runs of a job.
func (e *evidence) checkStarts(id string, runs []run) {
	slices.SortFunc(runs, func(a, b run) int { return a.attempt - b.attempt })
	for i, r := range runs {
		if i > 0 && r.attempt == runs[i-1].attempt {
			e.find(id, "attempt %d was started twice, by %s and %s", r.attempt, runs[i-1].process, r.process)
		}
	}
}

// checkCounts: no attempt goes back behind a checkpoint that an earlier one has saved. It may be further on: a process
// can be killed after a save and before it records it.
func (e *evidence) checkCounts(job *shown) {
	for _, loaded := range e.counts[job.JobID] {
		for _, saved := range e.counts[job.JobID] {
			if loaded.loaded && !saved.loaded && saved.attempt < loaded.attempt && saved.n > loaded.n {
				e.find(job.JobID, "attempt %d began at %d, and attempt %d had saved %d", loaded.attempt, loaded.n, saved.attempt, saved.n)
			}
		}
	}
}

// over reports whether a run was over at an instant: the handler or its process had ended.
func (e *evidence) over(r run, at time.Time, o *order) bool {
	return !r.end.IsZero() && r.end.Before(at) || e.diedBy(r.process, at) || e.frozeDuring(r.process, r.start, at) ||
		o.shape.mayOutlive || e.pulled(r.job) && e.cutOff(r.start, at)
}

// checkRun: an attempt ended as the API shows. Only a killed or frozen process loses an attempt.
func (e *evidence) checkRun(job *shown, o *order, r run) {
	a := job.attempt(r.attempt)
	if a == nil {
		e.find(job.JobID, "attempt %d ran, and the API knows of none", r.attempt)
		return
	}
	if name := e.processes[a.WorkerID]; name != r.process {
		e.find(job.JobID, "attempt %d ran in %s, the API shows %s (%s)", r.attempt, r.process, name, a.WorkerID)
	}
	// Other workers settle the attempts of a silent process: as lost, or as interrupted if its last heartbeat listed
	// the attempt as not started. A process that was frozen still ends the handler when it wakes, in whatever way.
	if a.Outcome == "lost" || a.Outcome == "interrupted" {
		at := a.FinishedAt
		if at != nil && (e.diedBy(r.process, *at) || e.frozeDuring(r.process, at.Add(-frozenFor), *at)) {
			return
		}
		if a.Outcome == "lost" || r.end.IsZero() {
			e.find(job.JobID, "attempt %d was called %s, and %s lived", r.attempt, a.Outcome, r.process)
			return
		}
	}
	if o.shape.mayOutlive || slices.Contains(endings[a.Outcome], r.how) {
		return
	}
	e.find(job.JobID, "attempt %d is %s, its handler ended with %q", r.attempt, a.Outcome, r.how)
}

// endings maps an attempt's outcome to the ways in which its handler may have ended. A cancelled or interrupted one
// may just have finished.
var endings = map[string][]string{
	"completed":   {witness.OK},
	"failed":      {witness.Failed, witness.Panic, "the attempt ran longer than its job's timeoutMs"},
	"snoozed":     {witness.Snoozed},
	"cancelled":   {"the attempt was cancelled"},
	"interrupted": {"the worker is stopping"},
}

// checkDeadLetters: each failure of a job has one dead letter, and there are no others.
func (e *evidence) checkDeadLetters() {
	letters := map[string]bool{}
	for id, job := range e.jobs {
		for _, m := range job.History {
			if m.To == failed && m.From != failed {
				letter := jobevent.DeadLetterID(uuid.MustParse(id), m.Attempt)
				letters[letter] = true
				if e.dead[letter] == 0 && !e.wiped {
					e.find(id, "failed at attempt %d, and has no dead letter", m.Attempt)
				}
			}
		}
	}
	for letter := range e.dead {
		if strings.HasPrefix(letter, "rejected") {
			e.find("", "a record was %s", letter)
		} else if !letters[letter] {
			id, _, _ := strings.Cut(letter, ".")
			e.find(id, "has a dead letter %s, and has not failed then", letter)
		}
	}
}

func clock(at time.Time) string { return at.Local().Format("15:04:05.000") }
