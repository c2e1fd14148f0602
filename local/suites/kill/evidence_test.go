package kill

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/kill/witness"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// evidence is all that is known after a run.
type evidence struct {
	load  *load
	chaos *chaos

	orders    map[string]*order // by key
	jobs      map[string]*shown // by id
	ran       map[string][]run  // by job id
	counts    map[string][]counted
	processes map[string]string // by worker id: the process's name in the witness file
	lives     map[string]life   // by that name
	dead      map[string]int    // dead letters by id, and rejected records
	runs      map[string]int    // records of run-job, by id
	stepped   bool              // PostgreSQL's clock was stepped: its times are no evidence
	wiped     bool              // the broker's data was wiped, and early dead letters with it
	paired    bool              // a process ends when the other one has taken over

	findings []finding
}

// counted is a number that an attempt found in its checkpoint, or saved.
type counted struct {
	attempt, n int
	loaded     bool
}

// run is an attempt as the witness saw it.
type run struct {
	job        string
	attempt    int
	key        string
	process    string
	start, end time.Time // zero end: there was none
	how        string
	answers    []string // to a pull worker that settled it
}

type finding struct {
	job  string // empty: about no job
	text string
}

func (e *evidence) find(job, format string, args ...any) {
	e.findings = append(e.findings, finding{job, fmt.Sprintf(format, args...)})
}

func (h *fixture) evidence(ctx context.Context, l *load, c *chaos) *evidence {
	h.t.Helper()
	e := &evidence{
		load: l, chaos: c, orders: map[string]*order{}, ran: map[string][]run{},
		counts:    map[string][]counted{},
		processes: map[string]string{}, lives: map[string]life{},
		paired: h.plan.form == paired, wiped: h.plan.form == paired, // its broker is lost with the process
	}
	for _, o := range l.all() {
		e.orders[o.key] = o
	}
	for _, p := range h.processes {
		for _, life := range p.all() {
			e.lives[life.name] = life
		}
	}
	var err error
	if e.jobs, err = h.jobs(ctx); err != nil {
		h.t.Fatal(err)
	}
	if e.dead, err = h.published(jobevent.TopicDeadLetter); err != nil {
		h.t.Fatal(err)
	}
	e.runs = map[string]int{}
	for _, queue := range append(h.allQueues(), jobevent.DefaultQueue) {
		published, err := h.published(jobevent.RunTopic(queue))
		if err != nil {
			h.t.Fatal(err)
		}
		maps.Copy(e.runs, published)
	}
	lines, err := witness.Read(h.witnessFile())
	if err != nil {
		h.t.Fatal(err)
	}
	e.addLines(lines)
	return e
}

// addLines adds the witness's lines.
func (e *evidence) addLines(lines []witness.Line) {
	for _, l := range lines {
		id := l.Job.String()
		switch l.What {
		case witness.Worker:
			e.processes[l.How] = l.Process
		case witness.Start:
			e.ran[id] = append(e.ran[id], run{
				job: id, attempt: l.Attempt, key: l.Key, process: l.Process, start: l.At,
			})
		case witness.End:
			runs := e.ran[id]
			i := slices.IndexFunc(runs, func(r run) bool {
				return r.attempt == l.Attempt && r.process == l.Process && r.end.IsZero()
			})
			if i < 0 {
				e.find(id, "attempt %d ends and has not started, according to %s", l.Attempt, l.Process)
				continue
			}
			runs[i].end, runs[i].how = l.At, l.How
		case witness.Loaded, witness.Saved:
			n, err := strconv.Atoi(l.How)
			if err != nil {
				e.find(id, "attempt %d has counted to %q", l.Attempt, l.How)
			}
			e.counts[id] = append(e.counts[id], counted{l.Attempt, n, l.What == witness.Loaded})
		case witness.Answered:
			runs := e.ran[id]
			for i := range runs {
				if runs[i].attempt == l.Attempt && runs[i].process == l.Process {
					runs[i].answers = append(runs[i].answers, l.How)
				}
			}
		}
	}
}

// diedBy reports whether a process was dead at an instant.
func (e *evidence) diedBy(process string, at time.Time) bool {
	ended := e.lives[process].ended
	return !ended.IsZero() && ended.Before(at)
}

// frozeDuring reports whether a process was frozen at any moment between from and to.
func (e *evidence) frozeDuring(process string, from, to time.Time) bool {
	return slices.ContainsFunc(e.lives[process].frozen, func(f freeze) bool {
		return f.from.Before(to) && (f.to.IsZero() || f.to.After(from))
	})
}
