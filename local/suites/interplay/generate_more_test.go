package interplay

import (
	"fmt"
	"strings"
)

func (d *drawing) batch() {
	count := pick(d, "count", 3, 1, 5, 0)
	s := Step{
		Do: "batch", Closed: d.eighths("closed", 4),
		OnComplete: d.eighths("onComplete", 5), OnFailure: d.eighths("onFailure", 5),
	}
	if d.eighths("expires", 2) {
		s.Ms = pick(d, "expires", 1500, 600, 4000)
	}
	for i := range count {
		j := d.job("batch")
		j.Name, j.Batch, j.Debounce = fmt.Sprintf("s%d.%d", d.n, i), "", ""
		s.Jobs = append(s.Jobs, j)
	}
	name := fmt.Sprintf("s%d", d.n)
	d.add(s)
	for _, j := range s.Jobs {
		d.made(j)
		d.owned = append(d.owned, j.Name)
	}
	d.batches = append(d.batches, name)
}

// flow draws a graph whose jobs come after jobs that were drawn before them.
func (d *drawing) flow() {
	name := fmt.Sprintf("s%d", d.n)
	s := Step{Do: "flow", OnComplete: d.eighths("onComplete", 4), OnFailure: d.eighths("onFailure", 4)}
	if d.eighths("expires", 1) {
		s.Ms = pick(d, "expires", 2500, 1000, 5000)
	}
	fanOuts := map[string]bool{}
	for i := range pick(d, "count", 3, 2, 4, 6) {
		j := d.job("flow")
		j.Name = fmt.Sprintf("%s.%d", name, i)
		if i > 0 && d.eighths("needs", 7) {
			d.needs(&j, s.Jobs, fanOuts)
		}
		if outside := d.outside(j); outside != "" && j.ForEach == "" {
			j.After = append(j.After, Need{outside, pick(d, "on", "", "ended", "failed")})
		}
		if len(j.After) == 0 {
			j.AnyEnd = false
		}
		s.Jobs = append(s.Jobs, j)
	}
	d.add(s)
	for _, j := range s.Jobs {
		d.flows[name] = append(d.flows[name], j.Name)
		d.made(j)
		d.owned = append(d.owned, j.Name)
		if j.ForEach != "" {
			d.fanOuts = append(d.fanOuts, j.Name)
		}
	}
	d.flowNames = append(d.flowNames, name)
}

func (d *drawing) outside(j Job) string {
	if len(d.owned) == 0 || j.Debounce != "" || !d.eighths("outside", 1) {
		return ""
	}
	return pick(d, "needed", recent(d.owned)...)
}

func (d *drawing) needs(j *Job, before []Job, fanOuts map[string]bool) {
	j.After, j.AnyEnd, j.Batch = nil, false, ""
	seen := map[string]bool{}
	for range pick(d, "needs", 1, 2, 1) {
		other := pick(d, "needed", recent(before)...)
		if seen[other.Name] {
			continue
		}
		seen[other.Name] = true
		j.After = append(j.After, Need{other.Name, pick(d, "on", "", "", "ended", "", "failed", "completed")})
	}
	source := j.After[0]
	var of Job
	for _, b := range before {
		if b.Name == source.Of {
			of = b
		}
	}
	if unseen(of.Type) || source.On == "failed" {
		return
	}
	if d.eighths("forEach", 3) {
		if !fanOuts[of.Name] && d.eighths("source", 6) { // most sources put out their array at once
			for k := range before {
				if before[k].Name == of.Name && before[k].Type != "EXTERNAL" {
					before[k].Acts, before[k].ExpiresMs = []Act{{Do: actOK, Ms: 5}}, 0
				}
			}
		}
		j.ForEach, j.After = of.Name, j.After[:1]
		j.After[0].On = ""
		fanOuts[j.Name] = true
		if unseen(j.Type) {
			j.Type, j.Acts = "FUNCTION", d.acts("FUNCTION")
			d.timeouts(j)
		}
		j.Throttle = "" // the elements would have one each
		return
	}
	if !unseen(j.Type) && d.eighths("uses", 4) {
		j.Uses, j.Default = of.Name, source.On == "ended" || d.eighths("default", 4)
	}
}

func (d *drawing) command() {
	of := pick(d, "job", recent(d.jobs)...)
	s := Step{Do: pick(d, "command", "cancel", "retry", "reschedule", "patch", "run-again", "delete", "cancel", "retry"), Of: of}
	switch s.Do {
	case "retry", "delete":
		s.Ended = d.eighths("ended", 5)
		if len(d.failing) > 0 && d.eighths("failed", 5) {
			s.Of = pick(d, "failed", recent(d.failing)...)
		}
	case "reschedule":
		s.Ms = pick(d, "ms", 200, 0, 800, 2000)
	case "patch":
		s.Patch = d.change()
	case "run-again":
		if d.eighths("changes", 3) {
			s.Patch = d.change()
		}
	}
	if forChild := s.Patch == nil && s.Do != "run-again"; forChild && len(d.callers) > 0 && d.eighths("of a call", 3) {
		s.Of = pick(d, "caller", recent(d.callers)...) + ofCaller
	}
	name := fmt.Sprintf("s%d", d.n)
	d.add(s)
	if s.Do == "run-again" {
		d.jobs = append(d.jobs, name)
	}
}

func (d *drawing) change() *Job {
	c := &Job{}
	switch pick(d, "change", "priority", "tags", "delay", "retries", "acts", "expires") {
	case "priority":
		c.Priority = pick(d, "priority", 7, 3)
	case "tags":
		c.Tags = []string{"green"}
	case "delay":
		c.DelayMs = pick(d, "delay", 200, 900)
	case "retries":
		c.MaxRetries = new(pick(d, "maxRetries", 0, 2))
	case "acts":
		c.Acts = []Act{{Do: actOK, Ms: 10}}
	case "expires":
		c.ExpiresMs = pick(d, "expires", 3000, 1000)
	}
	return c
}

func (d *drawing) bulk() {
	s := Step{
		Do: "bulk", Command: pick(d, "command", "cancel", "retry", "reschedule", "delete", "retry"),
		By: pick(d, "by", "list", "tag", "ordering", "owner", "batch", "elements", "list"),
	}
	if s.By == "elements" {
		if len(d.fanOuts) == 0 {
			s.By = "list"
		} else {
			s.Of = pick(d, "fan-out", recent(d.fanOuts)...)
		}
	}
	s.Ended = (s.Command == "retry" || s.Command == "delete") && d.eighths("ended", 3)
	if s.Command == "reschedule" {
		s.Ms = pick(d, "ms", 300, 0)
	}
	for range pick(d, "count", 4, 2, 8) {
		s.More = append(s.More, pick(d, "job", recent(d.jobs)...))
	}
	if s.By == "batch" {
		all := append(append([]string(nil), d.batches...), d.flowNames...)
		if len(all) == 0 {
			s.By = "owner"
		} else {
			s.Of = pick(d, "batch", all...)
		}
	}
	d.bulks = append(d.bulks, fmt.Sprintf("s%d", d.n))
	d.add(s)
	if d.eighths("abort", 1) {
		d.add(Step{Do: "abort", Of: fmt.Sprintf("s%d", d.n-1)})
	}
}

func (d *drawing) batchCommand() {
	s := Step{
		Do: pick(d, "command", "batch-close", "batch-retry", "batch-cancel", "batch-retry"),
		Of: pick(d, "batch", recent(d.batches)...),
	}
	s.Ended = s.Do == "batch-retry" && d.eighths("ended", 4)
	d.add(s)
}

func (d *drawing) flowCommand() {
	of := pick(d, "flow", recent(d.flowNames)...)
	s := Step{Do: pick(d, "command", "flow-retry", "flow-cancel", "flow-retry"), Of: of}
	if s.Do == "flow-retry" {
		s.Ended = d.eighths("ended", 5)
		switch pick(d, "again", "", "from", "all", "") {
		case "from":
			s.More = []string{pick(d, "from", d.flows[of]...)}
		case "all":
			s.All = true
		}
	}
	d.add(s)
}

func (d *drawing) control() {
	if len(d.controls) > 0 && d.eighths("lift", 4) {
		of := pick(d, "control", d.controls...)
		d.add(Step{Do: pick(d, "lift", "lift", "resume"), Kind: of.Kind, Name: of.Name})
		return
	}
	s := Step{Do: "control", Kind: pick(d, "kind", "owner", "type", "fairnessKey", "queue"), Limit: &Limit{}}
	if d.Alone { // each queue, type or key that has no control of its own
		s.Kind, s.Name = pick(d, "kind", "type", "queue", "fairnessKey"), "*"
	}
	switch s.Kind {
	case "fairnessKey":
		if d.Alone {
			break
		}
		s.Name = pick(d, "name", "f0", "f1", "")
	case "queue":
		switch {
		case d.Alone:
		case len(d.queues) == 0:
			s.Kind = "owner"
		default:
			s.Name = pick(d, "queue", d.queues...)
		}
	}
	limit := pick(d, "limit", "maxRunning", "pause", "rate", "maxRunning", "pause", "both")
	if s.Kind == "fairnessKey" && d.eighths("weight", 4) {
		limit = "weight"
	}
	switch limit {
	case "pause":
		s.Limit.Paused = true
	case "maxRunning":
		s.Limit.MaxRunning = new(pick(d, "maxRunning", 1, 2, 3))
	case "rate":
		s.Limit.Rate = new(pick(d, "rate", 5.0, 2.0, 20.0))
	case "weight":
		s.Limit.Weight = new(pick(d, "share", 3, 5))
	case "both":
		s.Limit.MaxRunning, s.Limit.Rate = new(2), new(10.0)
	}
	if d.Alone && (s.Limit.Weight != nil || s.Limit.Paused && s.Kind == "fairnessKey") {
		s.Limit = &Limit{MaxRunning: new(2)}
	}
	d.controls = append(d.controls, s)
	d.add(s)
}

func (d *drawing) queue() {
	if len(d.queues) > 0 && d.eighths("remove", 5) {
		d.add(Step{
			Do: pick(d, "queue", "queue-remove", "queue-put", "queue-remove"), Name: pick(d, "name", d.queues...), All: d.eighths("drain", 6),
		})
		return
	}
	if len(d.queues) == 2 {
		return
	}
	name := queueFor(pick(d, "for", "PULL", "FUNCTION"))
	if len(d.queues) == 1 {
		name = map[string]string{"q0": "q1", "q1": "q0"}[d.queues[0]]
	}
	d.add(Step{Do: "queue-put", Name: name})
	d.queues = append(d.queues, name)
}

func (d *drawing) schedule() {
	if len(d.schedules) > 0 && d.eighths("edit", 5) {
		s := Step{Do: pick(d, "edit", "schedule-put", "schedule-run", "schedule-pause", "schedule-resume", "schedule-delete"),
			Name: pick(d, "schedule", d.schedules...)}
		if s.Do == "schedule-put" {
			d.fill(&s)
		}
		name := fmt.Sprintf("s%d", d.n)
		d.add(s)
		if s.Do == "schedule-run" {
			d.jobs = append(d.jobs, name)
		}
		return
	}
	if len(d.schedules) == 2 {
		return
	}
	s := Step{Do: "schedule-put", Name: fmt.Sprintf("c%d", len(d.schedules))}
	d.fill(&s)
	d.schedules = append(d.schedules, s.Name)
	d.add(s)
}

func (d *drawing) fill(s *Step) {
	s.Cron = pick(d, "cron", "* * * * * *", "@every 1s", "*/2 * * * * *")
	s.Overlap = pick(d, "overlap", "allow", "skip", "cancel")
	s.Missed = pick(d, "missed", "all", "one", "skip")
	j := d.job("schedule")
	j.Name = fmt.Sprintf("s%d", d.n)
	j.Idem, j.OwnID, j.Queue = "", false, ""
	s.Jobs = []Job{j}
}

// retain deletes what has ended, of all programs: so only one that runs alone has it.
func (d *drawing) retain() {
	if len(d.jobs) == 0 || !d.eighths("retains", 3) {
		d.submit()
		return
	}
	d.add(Step{Do: "retain", Ms: pick(d, "ms", 1500, 500, 3000)})
	d.Steps[len(d.Steps)-1].Race = false
	for range pick(d, "repeats", 1, 3, 0) {
		d.add(Step{Do: "repeat", Of: pick(d, "job", d.jobs...)})
	}
}

// fault disturbs all programs, so few programs have one.
func (d *drawing) fault() {
	if !d.eighths("disturb", 2) {
		d.submit()
		return
	}
	s := Step{
		Do: pick(d, "fault", "kill", "stop one", "drain", "kill one", "stop", "kill one", "kill", "stop one"),
		Ms: pick(d, "ms", 800, 300, 2000, 4000),
	}
	if strings.HasSuffix(s.Do, " one") {
		s.Name = pick(d, "function", apartNames...)
	}
	d.add(s)
}
