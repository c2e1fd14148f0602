package interplay

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"
)

// NewProgram returns the program of a seed.
func NewProgram(seed uint64) Program {
	p := rapid.Custom(draw).Example(int(seed)) //nolint:gosec // any number is a seed
	p.Seed = seed
	return p
}

// drawing is what a program has made until now, so that later steps meet it.
type drawing struct {
	*rapid.T

	Program

	n         int
	jobs      []string // names
	owned     []string // of those that belong to the owner: only they can be waited for
	failing   []string // of jobs that are likely to fail
	callers   []string // of jobs that call others
	batches   []string
	flows     map[string][]string // names of their jobs
	flowNames []string
	schedules []string
	alerts    int
	fanOuts   []string
	bulks     []string
	queues    []string
	controls  []Step
}

// pick draws one of the options. rapid prefers the first ones a little.
func pick[V any](d *drawing, label string, options ...V) V {
	return rapid.SampledFrom(options).Draw(d.T, label)
}

// eighths returns true n of 8 times.
func (d *drawing) eighths(label string, n int) bool {
	return pick(d, label, 7, 1, 5, 3, 6, 2, 4, 0) < n
}

// rarely returns true n of 64 times.
func (d *drawing) rarely(label string, n int) bool {
	return pick(d, label, 7, 1, 5, 3, 6, 2, 4, 0)*8+pick(d, label, 7, 1, 5, 3, 6, 2, 4, 0) < n
}

func draw(t *rapid.T) Program {
	d := &drawing{T: t, flows: map[string][]string{}}
	d.Alone = d.rarely("alone", 2)
	for range pick(d, "length", 24, 12, 36, 72, 30, 48, 18, 100) {
		d.step()
	}
	return d.Program
}

// step draws one step. The numbers are how often its kind comes, relative to the others.
func (d *drawing) step() {
	kinds := []struct {
		weight int
		can    bool
		add    func()
	}{
		{22, true, d.submit},
		{3, true, d.batch},
		{4, true, d.flow},
		{14, len(d.jobs) > 0, d.command},
		{4, len(d.jobs) > 0, d.bulk},
		{3, len(d.batches) > 0, d.batchCommand},
		{4, len(d.flowNames) > 0, d.flowCommand},
		{5, true, d.control},
		{4, true, d.queue},
		{3, true, d.schedule},
		{1, true, d.fault},
		{1, true, d.alert},
		{3, d.Alone, d.retain},
		{4, len(d.jobs) > 0, d.intrude},
	}
	var possible []int
	for i, k := range kinds {
		for range k.weight {
			if k.can {
				possible = append(possible, i)
			}
		}
	}
	// The order is mixed, because rapid prefers what comes first.
	i := possible[(pick(d, "kind", 11, 3, 14, 7, 0, 9, 5, 2, 13, 8, 1, 15, 6, 12, 10, 4)*len(possible)/16+
		pick(d, "which", 4, 2, 0, 3, 1))%len(possible)]
	kinds[i].add()
}

func (d *drawing) add(s Step) {
	s.N = d.n
	d.n++
	s.After = pick(d, "after", 20, 0, 50, 0, 150, 5, 400, 0)
	s.Race = d.eighths("race", 3)
	d.Steps = append(d.Steps, s)
}

func (d *drawing) name(i, of int) string {
	if of == 1 {
		return fmt.Sprintf("s%d", d.n)
	}
	return fmt.Sprintf("s%d.%d", d.n, i)
}

func (d *drawing) submit() {
	way := pick(d, "way", "one", "many", "event", "one", "structured", "many", "events", "outbox", "hook", "one", "rollback")
	count := 1
	if way == "many" || way == "events" || way == "outbox" {
		count = pick(d, "count", 3, 2, 5, 8)
	}
	s := Step{Do: "submit", Way: way}
	like := d.job(way)
	for i := range count {
		j := d.variant(like, way)
		j.Name = d.name(i, count)
		s.Jobs = append(s.Jobs, j)
	}
	d.add(s)
	for _, j := range s.Jobs {
		if way != "rollback" {
			d.made(j)
		}
		if way != "rollback" && way != "hook" && way != "outbox" {
			d.owned = append(d.owned, j.Name)
		}
	}
	d.afterCall(s.Jobs)
	if d.eighths("repeat", 1) && way != "rollback" && way != "outbox" {
		d.add(Step{Do: "repeat", Of: s.Jobs[0].Name})
	}
}

func calls(j Job) bool {
	return slices.ContainsFunc(j.Acts, func(a Act) bool { return a.Do == actCall })
}

func (d *drawing) made(j Job) {
	d.jobs = append(d.jobs, j.Name)
	if slices.ContainsFunc(j.Acts, func(a Act) bool { return a.Do != actOK }) {
		d.failing = append(d.failing, j.Name)
	}
	if calls(j) {
		d.callers = append(d.callers, j.Name)
	}
}

// variant returns a job like another one, with acts of its own.
func (d *drawing) variant(like Job, way string) Job {
	if d.eighths("another kind", 2) {
		return d.job(way)
	}
	j := like
	j.Acts = d.acts(j.Type)
	j.Idem, j.OwnID = "", false
	if way != "hook" {
		d.timeouts(&j)
	}
	if way == "one" || way == "many" {
		d.identity(&j)
	}
	return j
}

func (d *drawing) key(kind string) string { return kind + pick(d, kind, "0", "1", "0", "2") }

func (d *drawing) identity(j *Job) {
	switch pick(d, "identity", 0, 1, 0, 2, 0, 0, 0) {
	case 1:
		j.Idem = d.key("i")
	case 2:
		j.OwnID = true
	}
}

// job draws a job that the way of submitting it allows.
func (d *drawing) job(way string) Job {
	j := Job{Type: pick(d, "type", "FUNCTION", "PULL", "FUNCTION", "EXTERNAL", "PULL", "FUNCTION", "SIMULATION", stepsType, emailType, reportType)}
	j.Acts = d.acts(j.Type)
	if way == "hook" {
		for i := range j.Acts {
			if j.Acts[i].Do == actHang || j.Acts[i].Do == actTardy {
				j.Acts[i].Do = actFail
			}
			if j.Acts[i].Back == backNever || j.Acts[i].Back == backLate {
				j.Acts[i].Back = backFail
			}
		}
		return j
	}
	d.plainOptions(&j)
	if way == "one" || way == "many" {
		d.identity(&j)
	}
	switch pick(d, "order", 0, 1, 0, 2, 0, 1, 0) {
	case 1:
		j.Ordering = d.key("o")
	case 2:
		j.Singleton = d.key("g")
		j.Drop = way != "flow" && d.eighths("drop", 2)
	}
	if way != "flow" && way != "event" {
		d.policy(&j, way)
	}
	if way != "schedule" && j.Debounce == "" {
		d.timesAndNeeds(&j, way)
	}
	return j
}

func (d *drawing) plainOptions(j *Job) {
	if d.eighths("priority", 2) {
		j.Priority = pick(d, "priority", 5, 9, 1)
	}
	if d.eighths("retries", 5) {
		j.MaxRetries = new(pick(d, "maxRetries", 2, 0, 1, 3))
	}
	j.Policy = pick(d, "policy", "fixed", "", "list", "exponential", "jitter")
	if d.eighths("fairness", 1) {
		j.Fairness = d.key("f")
	}
	if d.eighths("callback", 2) {
		j.Callback = pick(d, "receiver", "ok", "ok", "once500")
	}
	if d.eighths("tags", 2) {
		j.Tags = []string{pick(d, "tag", "red", "blue")}
	}
	j.KeepBuild = d.rarely("keepBuild", 3)
	j.Claims = d.rarely("claims", 6)
	if q := queueFor(j.Type); slices.Contains(d.queues, q) && d.eighths("queue", 5) {
		j.Queue = q
	}
	d.timeouts(j)
}

// timeouts gives a job short times if its acts exceed them, and else times that even a slow machine keeps.
func (d *drawing) timeouts(j *Job) {
	j.TimeoutMs = 20_000
	if slices.ContainsFunc(j.Acts, func(a Act) bool { return a.Do == actHang || a.Do == actTardy }) {
		j.TimeoutMs = pick(d, "timeout", 300, 150, 800)
	}
	j.WaitMs = 20_000
	if slices.ContainsFunc(j.Acts, func(a Act) bool { return a.Back == backNever || a.Back == backLate }) {
		j.WaitMs = pick(d, "callbackTimeout", 500, 200, 1000)
	}
}

// queueFor returns the queue that a program may create for jobs of a type: pull workers serve q1.
func queueFor(kind string) string {
	if kind == "PULL" || kind == stepsType {
		return "q1"
	}
	return "q0"
}

func (d *drawing) policy(j *Job, way string) {
	switch pick(d, "submit policy", 0, 1, 0, 2, 0, 3, 0, 0, 0) {
	case 1:
		j.Unique, j.While = d.key("u"), pick(d, "while", "", "ACTIVE", "WAITING")
	case 2:
		j.Throttle, j.PerMs = d.key("t"), pick(d, "per", 100, 30, 300)
	case 3:
		if way != "schedule" {
			j.Debounce, j.HoldMs, j.MaxHoldMs = d.key("d"), pick(d, "hold", 300, 100, 800), 1500
			if j.Ordering != "" { // all requests of a held job must have the same
				j.Ordering = "o0"
			}
			j.Singleton, j.Drop = "", false
			if j.Ordering != "" {
				j.Debounce += "o"
			}
		}
	}
}

func (d *drawing) timesAndNeeds(j *Job, way string) {
	if j.Throttle == "" && d.eighths("delay", 2) {
		j.DelayMs, j.RunAt = pick(d, "delay", 300, 100, 1000, 2500), d.eighths("runAt", 4)
	}
	if d.eighths("expires", 1) {
		j.ExpiresMs = j.DelayMs + pick(d, "expires", 400, 1500, 150, 4000)
		if j.Throttle != "" {
			j.ExpiresMs = 0
		}
	}
	if way == "flow" {
		return
	}
	if way == "event" || way == "outbox" || way == "rollback" {
		return
	}
	if len(d.owned) > 0 && d.eighths("needs", 2) {
		need := Need{pick(d, "needed", recent(d.owned)...), pick(d, "on", "", "ended", "failed", "completed")}
		j.After = []Need{need}
		if j.After[0].On == "" {
			j.AnyEnd = d.eighths("any end", 3)
		}
	}
	if len(d.batches) > 0 && d.eighths("joins", 3) {
		j.Batch = pick(d, "batch", recent(d.batches)...)
	}
}

// recent returns the last few, newest first: a step meets what is under way more often than what has ended.
func recent[V any](list []V) []V {
	last := slices.Clone(list[max(0, len(list)-12):])
	slices.Reverse(last)
	return last
}

func (d *drawing) acts(kind string) (list []Act) {
	if kind == "SIMULATION" {
		return []Act{{Do: pick(d, "act", actOK, actOK, actFail), Ms: pick(d, "ms", 0, 50)}}
	}
	if kind == reportType {
		return []Act{{Do: actOK}}
	}
	for range pick(d, "acts", 1, 2, 1, 3) {
		a := Act{Ms: pick(d, "ms", 20, 0, 5, 100, 300)}
		switch kind {
		case "FUNCTION":
			a.Do = pick(d, "act", actOK, actFail, actOK, actLater, actOK, actSnooze, actFatal, actAfter, actHang, actDrop)
		case emailType:
			a.Do = pick(d, "act", actOK, actFail, actOK, actDrop, actFatal)
		case stepsType:
			a.Do = pick(d, "act", actOK, actFail, actOK, actFatal)
		case "PULL":
			a.Do = pick(d, "act", actOK, actCall, actFail, actOK, actLater, actTwice, actCall, actSnooze, actFatal, actAfter, actTardy, actReceive)
			if a.Do == actTardy && d.eighths("silent", 2) {
				a.Do = actHang // takes the lease of 15 s
			}
		default:
			a.Do = pick(d, "act", actLater, actLater, actLater, actFail, actFatal, actHang)
		}
		if a.Do == actCall {
			a.Calls = d.calls()
		}
		if a.Do == actLater {
			a.Back = pick(d, "back", backOK, backFail, backOK, backEarly, backTwice, backFatal, backWrong, backProgress, backNever, backLate)
		}
		a.Saves = kind != "EXTERNAL" && kind != stepsType && kind != emailType && a.Do != actHang && a.Do != actDrop && a.Do != actTardy && d.eighths("saves", 2)
		list = append(list, a)
	}
	// A job that only snoozes, or waits for one event after another, does not end.
	switch last := &list[len(list)-1]; last.Do {
	case actSnooze, actReceive:
		last.Do = actOK
	case actCall:
		list = append(list, Act{Do: actOK})
	}
	return list
}
