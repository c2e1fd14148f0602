package interplay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/jobweaver/jobweaver/shared/client"
)

// Matrix counts in how many programs two features met on the same job.
type Matrix struct {
	mu       sync.Mutex
	pairs    map[[2]string]int
	programs int
	jobs     int
	runs     int
	arrivals int
	faults   map[string]int
}

// The features of a job: what it is, and what happens to it.
var (
	natures = []string{
		"one", "many", "event", "structured", "events", "hook", "outbox", "repeat", "run again", "schedule",
		"FUNCTION", "EXTERNAL", "PULL", "SIMULATION", stepsType, emailType, reportType,
		"order", "singleton", "drop", "unique", "throttle", "debounce", "idempotency", "own id",
		"after", "condition", "any end", "batch", "flow", "fan-out", "element", "$output", "default",
		"runAt", "expiresAt", "priority", "fairness", "keepBuild", "tags", "callbackUrl", "created queue",
		"fails", "fatal", "retry after", "snooze", "dropped", "timeout", "tardy", "twice", "receive", "calls", "child", "child failed", "together", "checkpoint",
		"waits", "early", "back twice", "wrong secret", "progress", "no callback", "late callback", "retried", "lost",
	}
	happenings = []string{
		"cancel", "retry", "reschedule", "patch", "delete", "again",
		"bulk cancel", "bulk retry", "bulk reschedule", "bulk delete",
		"batch cancel", "batch retry", "batch expires", "flow cancel", "flow retry", "flow again", "flow expires",
		"pause", "maxRunning", "rate", "weight", "queue removed", "drain", "retain", "stop", "kill", "stop one", "kill one", "alert",
	}
)

// Add counts the pairs of a record.
func (m *Matrix) Add(r *Record) {
	f := factsOf(r)
	seen := map[[2]string]bool{}
	meet := func(j *client.Job) {
		have := slices.Sorted(maps.Keys(f.features(j)))
		for i, a := range have {
			for _, b := range have[i+1:] {
				seen[[2]string{a, b}] = true
			}
		}
	}
	f.each(meet)
	for _, j := range r.Gone {
		meet(j)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pairs == nil {
		m.pairs, m.faults = map[[2]string]int{}, map[string]int{}
	}
	for pair := range seen {
		m.pairs[pair]++
	}
	for _, x := range r.Faults {
		m.faults[x.Kind]++
	}
	m.programs++
	m.jobs += len(r.Jobs)
	m.runs += len(r.Runs)
	m.arrivals += len(r.Arrivals)
}

func (f *facts) features(j *client.Job) map[string]bool {
	have := map[string]bool{}
	set := func(name string, is bool) {
		if is {
			have[name] = true
		}
	}
	set(j.JobType, j.JobType != f.Owner+"-type")
	set("PULL", j.JobType == f.Owner+"-type")
	set("order", j.OrderingKey != "")
	set("singleton", j.Singleton != nil)
	set("drop", j.Singleton != nil && j.Singleton.Else == "drop")
	set("unique", j.Unique != nil)
	set("throttle", j.Throttle != nil)
	set("debounce", j.Debounce != nil)
	set("after", len(j.After) > 0)
	set("condition", len(j.Conditions) > 0)
	set("any end", j.OnDependencyFailure == "run")
	set("fan-out", j.ForEach != nil)
	set("element", j.Element != nil)
	set("runAt", j.RunAt != nil)
	set("expiresAt", j.ExpiresAt != nil)
	set("priority", j.Priority > 0)
	set("fairness", j.FairnessKey != "" && j.FairnessKey != j.OwnerID)
	set("keepBuild", j.KeepBuild)
	set("tags", len(j.Tags) > 1)
	set("callbackUrl", j.CallbackURL != "")
	set("created queue", strings.HasPrefix(j.Queue, f.Owner))
	set("schedule", j.Schedule != nil)
	set("retried", j.RetryCount > 0)
	set("run again", j.RunAgainOf != "")
	set("again", j.RunAgainAs != "")
	set("lost", slices.ContainsFunc(j.Attempts, func(a client.Attempt) bool { return a.Outcome == "lost" }))
	for _, g := range f.groups() {
		set("flow", g.flow != nil && g.id == j.BatchID)
		set("batch", g.flow == nil && g.id == j.BatchID)
		set("batch expires", g.flow == nil && g.id == j.BatchID && g.ExpiredAt != nil)
		set("flow expires", g.flow != nil && g.id == j.BatchID && g.ExpiredAt != nil)
	}
	if s := f.spec(j.JobID); s != nil {
		set(s.Way, slices.Contains(natures, s.Way))
		set("child", s.Way == wayCall)
		set("idempotency", s.Job.Idem != "")
		set("own id", s.Job.OwnID)
		set("$output", s.Job.Uses != "")
		set("default", s.Job.Default)
		set("repeat", slices.ContainsFunc(f.names, func(n string) bool { return strings.HasPrefix(n, s.Job.Name+" again ") }))
	}
	f.acts(j, set)
	f.happened(j, set)
	return have
}

var actNames = map[string]string{
	actFail: "fails", actFatal: "fatal", actAfter: "retry after", actSnooze: "snooze", actDrop: "dropped", actHang: "timeout",
	actTardy: "tardy", actLater: "waits", actReceive: "receive", actCall: "calls", childFailed: "child failed",
}

var backNames = map[string]string{
	backEarly: "early", "same again": "back twice", backWrong: "wrong secret", backProgress: "progress", backLate: "late callback",
}

func (f *facts) acts(j *client.Job, set func(string, bool)) {
	for _, r := range f.runs[j.JobID] {
		set(actNames[r.How], actNames[r.How] != "")
		set("checkpoint", r.Saved != "")
		set("twice", len(r.Settled) == 2)
		set("together", r.With > 0)
	}
	for _, b := range f.backs[j.JobID] {
		set(backNames[b.How], backNames[b.How] != "")
	}
	set("no callback", slices.ContainsFunc(j.Attempts, func(a client.Attempt) bool { return a.ErrorCode == "WORKER.CALLBACK_TIMEOUT" }))
}

// happened names what happened to a job before it had ended, or by its commands.
func (f *facts) happened(j *client.Job, set func(string, bool)) {
	for _, command := range []string{"cancel", "retry", "reschedule", "patch", "delete"} {
		for _, a := range f.may(j.JobID, command) {
			switch {
			case !a.ok():
			case single(a):
				set(command, true)
			case a.Path == "/api/operations":
				set("bulk "+command, slices.Contains(a.Jobs, j.JobID) || f.fits(a, j))
			case strings.Contains(a.Path, "/api/batches/"):
				set("batch "+command, j.BatchID != "")
			default:
				set("flow "+command, j.BatchID != "")
				set("flow again", a.Body != nil && command == "retry")
			}
		}
	}
	end := j.UpdatedAt
	for _, w := range f.Windows {
		if !concerns(w, j) || w.From.After(end) || w.To.Before(j.CreatedAt) {
			continue
		}
		set("pause", w.Limit.Paused)
		set("maxRunning", w.Limit.MaxRunning != nil)
		set("rate", w.Limit.Rate != nil)
		set("weight", w.Limit.Weight != nil)
	}
	for _, x := range f.Faults {
		set(x.Kind, x.From.Before(end) && x.To.After(j.CreatedAt))
	}
	set("alert", slices.ContainsFunc(f.Notices, func(n *NoticeSeen) bool {
		return n.State == "FIRING" && j.Status == client.Failed && (n.JobType == "" || n.JobType == j.JobType)
	}))
	for _, a := range f.Asked {
		set("queue removed", a.Method == "DELETE" && a.Path == "/api/queues/"+j.Queue+"?drain=true" && a.ok() && a.At.Before(end) && a.At.After(j.CreatedAt))
	}
}

// fits reports whether the filter of an operation finds a job that was accepted before it.
func (f *facts) fits(a *Asked, j *client.Job) bool {
	text := string(a.Body)
	if !j.CreatedAt.Before(a.At) || !strings.Contains(text, `"filter"`) {
		return false
	}
	return (!strings.Contains(text, `"tag"`) || slices.Contains(j.Tags, "red")) &&
		(!strings.Contains(text, `"orderingKey"`) || j.OrderingKey == f.Base+"-o0") &&
		(!strings.Contains(text, `"batchId"`) || j.BatchID != "" && strings.Contains(text, j.BatchID))
}

func (m *Matrix) of(a, b string) int {
	if a > b {
		a, b = b, a
	}
	return m.pairs[[2]string{a, b}]
}

// String is the matrix as a table of Markdown, and the pairs of natures that did not meet.
func (m *Matrix) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var text strings.Builder
	fmt.Fprintf(&text, "%d programs, %d jobs, %d starts of handlers, %d deliveries; %d drains, %d retentions, %d stops and %d kills of all, "+
		"%d stops and %d kills of one function were met\n\n", m.programs, m.jobs, m.runs, m.arrivals, m.faults["drain"], m.faults["retain"],
		m.faults["stop"], m.faults["kill"], m.faults["stop one"], m.faults["kill one"])
	fmt.Fprintf(&text, "| | %s |\n|---|%s\n", strings.Join(happenings, " | "), strings.Repeat("---|", len(happenings)))
	for _, a := range natures {
		fmt.Fprintf(&text, "| %s |", a)
		for _, b := range happenings {
			fmt.Fprintf(&text, " %d |", m.of(a, b))
		}
		text.WriteString("\n")
	}
	text.WriteString("\nNot met:\n")
	all := slices.Concat(natures, happenings)
	missing, pairs := 0, 0
	for i, a := range all {
		var with []string
		for _, b := range all[i+1:] {
			pairs++
			if m.of(a, b) == 0 {
				with = append(with, b)
			}
		}
		missing += len(with)
		if len(with) > 0 {
			fmt.Fprintf(&text, "- %s: %s\n", a, strings.Join(with, ", "))
		}
	}
	fmt.Fprintf(&text, "\n%d of %d pairs met.\n", pairs-missing, pairs)
	return text.String()
}
