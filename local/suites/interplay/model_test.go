package interplay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// facts is a record with what the rules look up in it.
type facts struct {
	*Record

	specs map[string]*Spec    // by id
	runs  map[string][]*Run   // by job, in the order of their starts
	backs map[string][]*Back  // by job
	asks  map[string][]*Asked // what was asked with success, by the command
	names []string            // of specs, in the order in which they were asked for

	retired map[string]time.Time // since when it is sure that retention has deleted a job
}

func factsOf(r *Record) *facts {
	f := &facts{
		Record: r, specs: map[string]*Spec{}, runs: map[string][]*Run{}, backs: map[string][]*Back{}, asks: map[string][]*Asked{},
		retired: map[string]time.Time{},
	}
	for name := range r.Specs {
		f.names = append(f.names, name)
	}
	slices.SortFunc(f.names, func(a, b string) int {
		return cmp.Or(r.Specs[a].Sent.Compare(r.Specs[b].Sent), strings.Compare(a, b))
	})
	for _, name := range f.names {
		if s := r.Specs[name]; s.ID != "" && f.specs[s.ID] == nil {
			f.specs[s.ID] = s
		}
	}
	for _, run := range r.Runs {
		f.runs[run.Job] = append(f.runs[run.Job], run)
	}
	for _, list := range f.runs {
		slices.SortFunc(list, func(a, b *Run) int { return a.Start.Compare(b.Start) })
	}
	for _, b := range r.Backs {
		f.backs[b.Job] = append(f.backs[b.Job], b)
	}
	for _, a := range r.Asked {
		if command := commandOf(a); command != "" && a.Want == 0 && (a.ok() || a.Again || a.Status == 0) {
			f.asks[command] = append(f.asks[command], a)
		}
	}
	for _, x := range r.Faults {
		for _, g := range x.Retired {
			f.retired[g.Job] = x.To
		}
	}
	return f
}

// commandOf returns what a request does to jobs: cancel, retry, reschedule, patch, delete; empty: it makes some.
func commandOf(a *Asked) string {
	switch {
	case a.Path == "/api/operations":
		var body struct{ Command string }
		_ = json.Unmarshal(a.Body, &body)
		return body.Command
	case strings.HasPrefix(a.Path, "/api/jobs/") && a.Method == "DELETE":
		return "delete"
	case a.Method == "PATCH":
		return "patch"
	}
	for _, command := range []string{"cancel", "retry", "reschedule"} {
		if a.Method == "POST" && strings.HasSuffix(a.Path, "/"+command) {
			return command
		}
	}
	return ""
}

// single reports whether a request is about one job.
func single(a *Asked) bool { return strings.HasPrefix(a.Path, "/api/jobs/") }

// may returns the requests that may have given a job a command.
func (f *facts) may(id, command string) (list []*Asked) {
	job := f.Jobs[id]
	for _, a := range f.asks[command] {
		var body struct{ Filter, JobIDs json.RawMessage }
		_ = json.Unmarshal(a.Body, &body)
		switch {
		case single(a):
			if !strings.Contains(a.Path, id) {
				continue
			}
		case a.Path == "/api/operations":
			if body.Filter == nil && !slices.Contains(a.Jobs, id) {
				continue
			}
		default: // of a batch or a flow
			if job != nil && (job.BatchID == "" || !strings.Contains(a.Path, job.BatchID)) {
				continue
			}
		}
		list = append(list, a)
	}
	if command == "delete" && !f.gone(id).IsZero() {
		list = append(list, retentionDeletes)
	}
	return list
}

// deletes reports whether the program may have deleted jobs.
func (f *facts) deletes() bool { return len(f.asks["delete"]) > 0 || len(f.retired) > 0 }

// deleted reports whether a job may have been deleted.
func (f *facts) deleted(id string) bool { return len(f.may(id, "delete")) > 0 }

// life is a part of a job's history, from its beginning or a retry by hand to an end.
type life struct {
	from    time.Time
	end     client.Move // zero: it has not ended
	revived bool        // it began with a retry by hand
	moves   []client.Move
	first   int // its attempts are first to last
	last    int
	runs    []*Run
}

// lives divides the history of a job.
func (f *facts) lives(j *client.Job) (list []life) {
	now := life{first: 1}
	for _, m := range j.History {
		if terminal(m.From) && m.From == m.To { // a command that came too late
			continue
		}
		if now.from.IsZero() {
			now.from = m.At
		}
		now.moves = append(now.moves, m)
		now.last = max(now.last, m.Attempt)
		if terminal(m.To) && m.From != m.To {
			now.end = m
			list = append(list, now)
			now = life{revived: true, first: now.last + 1}
			now.last = now.first - 1
		}
	}
	if len(now.moves) > 0 {
		list = append(list, now)
	}
	for i := range list {
		for _, r := range f.runs[j.JobID] {
			if r.Attempt >= list[i].first && r.Attempt <= list[i].last {
				list[i].runs = append(list[i].runs, r)
			}
		}
	}
	return list
}

// work is the time in which a job was surely at work in a life: from its first start to the last thing that it did.
type work struct {
	job      string
	from, to time.Time
	what     string
}

func (f *facts) works(j *client.Job) (list []work) {
	for _, l := range f.lives(j) {
		if len(l.runs) == 0 {
			continue
		}
		w := work{job: j.JobID, from: l.runs[0].Start, what: fmt.Sprintf("attempts %d to %d of %s", l.first, l.last, f.name(j.JobID))}
		w.to = w.from
		for _, r := range l.runs {
			w.to = later(w.to, r.Start)
			if at := f.overAt(r); !at.IsZero() {
				w.to = later(w.to, at)
			}
		}
		list = append(list, w)
	}
	return list
}

// overAt returns until when an attempt was surely at work; zero: it is not known.
func (f *facts) overAt(r *Run) time.Time {
	if r.How != actLater {
		return r.over()
	}
	for _, b := range f.backs[r.Job] {
		if b.Attempt == r.Attempt && b.Answer == 200 && b.Status != "PROGRESS" {
			return b.Sent
		}
	}
	return time.Time{}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// name returns how the program names a job.
func (f *facts) name(id string) string {
	if s := f.specs[id]; s != nil {
		return s.Job.Name + " (" + id + ")"
	}
	if j := f.Jobs[id]; j != nil {
		switch {
		case j.Element != nil:
			return fmt.Sprintf("element %d of %s", j.Element.Index, f.name(j.Element.FanOutID))
		case j.RunAgainOf != "" && j.RunAgainOf != id:
			return "the new " + f.name(j.RunAgainOf)
		}
		return nameIn(j.Payload) + " (" + id + ")"
	}
	return id
}

// short reports whether an attempt may have had a timeout that a slow machine exceeds. The content of a debounced job is
// another request's than the one that made it.
func (f *facts) short(id string, r *Run) bool {
	made, ran := f.spec(id), f.Specs[r.Name]
	return made == nil || made.Job.TimeoutMs < 10_000 || ran == nil || ran.Job.TimeoutMs < 10_000
}

// spec returns what was asked for with a job; nil: it is not known.
func (f *facts) spec(id string) *Spec {
	if s := f.specs[id]; s != nil {
		return s
	}
	j := f.Jobs[id]
	if j == nil {
		return nil
	}
	if j.Element != nil {
		return f.spec(j.Element.FanOutID)
	}
	if j.RunAgainOf != "" && j.RunAgainOf != id {
		if s := f.spec(j.RunAgainOf); s != nil {
			return s
		}
		// The old job was made by an earlier run of its flow, and is deleted.
	}
	return f.Specs[nameIn(j.Payload)]
}

// witnessed reports whether the witness sees every attempt of a job.
func witnessed(j *client.Job) bool { return !unseen(j.JobType) && j.ForEach == nil }

// unseen reports whether the witness does not see the attempts of a type: what they do takes no data of the witness.
func unseen(kind string) bool {
	return slices.Contains([]string{"SIMULATION", emailType, reportType, alertType}, kind)
}

// disturbed reports whether the installation was stopped or killed in a time.
func (f *facts) disturbed(from, to time.Time) bool {
	return slices.ContainsFunc(f.Faults, func(x Fault) bool {
		return x.From.Before(to) && x.To.After(from) && x.Kind != "drain" && x.Kind != "retain"
	})
}

// each calls do for every job at the end, in the order of their ids.
func (f *facts) each(do func(*client.Job)) {
	ids := make([]string, 0, len(f.Jobs))
	for id := range f.Jobs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		do(f.Jobs[id])
	}
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05.000") }
