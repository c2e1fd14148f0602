package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
	"github.com/jobweaver/jobweaver/shared/client"
)

// history is all that is known after the run. The checks use nothing else.
type history struct {
	orders    map[string]*order // by key
	jobs      map[string]*job   // by id, as the API shows them
	runs      map[string][]run  // by job id, in the order of their starts, as the witness saw them
	calls     map[string]int    // of SIMULATION jobs, by key
	delivered []installation.Line
	steps     []installation.Line // of jobs of pull workers: which ran, and what attempts have of them
	faults    []*fault
	made      []*batchMade
	batches   map[string]client.Batch // by id, as the API shows them
	ticks     map[string][]tick       // by schedule
	from      time.Time               // when the schedules existed
	until     time.Time               // when they were stopped
	clocks    []installation.Interval // when a database's or cron's clock was wrong: ticks may lie in the future

	workers map[string]string // the process, by worker id
	frozen  []installation.Interval
	exits   []installation.Exit
	records map[string]int // events on the run-job topics, by id
	stats   map[string]int // jobs by status, as the statistics have them
	drained time.Duration
	logs    []string // panics
	late    []string // complaints of the load, and slow recoveries
}

// job is a job as the API shows it.
type job struct {
	JobID     string
	JobType   string
	ParentID  string
	Status    string
	Output    json.RawMessage
	Attempt   int
	Tags      []string
	CreatedAt time.Time
	RunAt     *time.Time

	CancelRequestedAt *time.Time
	LastError         *struct{ ErrorCode, Message string }
	Schedule          *struct {
		Name string
		At   time.Time
	}
	Attempts []struct {
		Attempt   int
		WorkerID  string
		Outcome   string
		ErrorCode string
	}
	History []struct {
		At       time.Time
		From, To string
		Attempt  int
		By       string
	}
}

func (j *job) terminal() bool {
	return slices.Contains([]string{completed, failed, cancelled}, j.Status)
}

func (j *job) key() string {
	if len(j.Tags) == 0 {
		return ""
	}
	return j.Tags[0]
}

// workerOf returns the worker that had an attempt; empty: the API knows none.
func (j *job) workerOf(attempt int) string {
	for _, a := range j.Attempts {
		if a.Attempt == attempt {
			return a.WorkerID
		}
	}
	return ""
}

// outcomeOf returns the outcome of an attempt; empty: the API knows none.
func (j *job) outcomeOf(attempt int) string {
	for _, a := range j.Attempts {
		if a.Attempt == attempt {
			return a.Outcome
		}
	}
	return ""
}

// run is an attempt as the witness saw it.
type run struct {
	attempt    int
	key        string
	start, end time.Time // zero end: not seen
	how        string

	loaded, saved int // in the checkpoint that it got, and that it gave

	in     string // the step or the wait in which a pull worker's attempt ended
	beside int    // the jobs that a batch handler got together
}

// violation is a promise that was broken.
type violation struct {
	rule string
	job  string // empty: about no job
	text string
}

// verdict collects violations, and deviations that the documentation allows.
type verdict struct {
	violations []violation
	excused    int // overlaps and late starts of workers that were frozen or cut off
	doubled    int // starts of an attempt that had been started before
	lost       int // accepted jobs that do not exist or have not ended
}

func (v *verdict) find(rule, job, format string, args ...any) {
	v.violations = append(v.violations, violation{rule, job, fmt.Sprintf(format, args...)})
}

// addLines adds the witness's lines.
func (h *history) addLines(lines []installation.Line) {
	h.runs, h.calls = map[string][]run{}, map[string]int{}
	for _, l := range lines {
		switch l.What {
		case installation.LineStart:
			h.runs[l.Job] = append(h.runs[l.Job], run{
				attempt: l.Attempt, key: l.Key, start: l.At, loaded: l.Count, beside: l.Beside,
			})
		case installation.LineEnd:
			runs := h.runs[l.Job]
			for i := range runs {
				if runs[i].attempt == l.Attempt && runs[i].end.IsZero() {
					runs[i].end, runs[i].how, runs[i].saved, runs[i].in = l.At, l.How, l.Count, l.Name
					break
				}
			}
		case installation.LineCall:
			h.calls[l.Key]++
		case installation.LineDelivered:
			h.delivered = append(h.delivered, l)
		case installation.LineStep, installation.LineKept:
			h.steps = append(h.steps, l)
		}
	}
}

// silenced reports whether the worker of an attempt was frozen or cut off at any moment between from and to: then it
// may work on beside the next attempt. docs/functions.md describes how its outcome is fenced. So may a pull worker if
// what is between it and the scheduler was silent.
func (h *history) silenced(job string, attempt int, from, to time.Time) bool {
	worker := ""
	if j := h.jobs[job]; j != nil {
		worker = h.workers[j.workerOf(attempt)]
	}
	overlaps := func(s installation.Interval) bool {
		its := worker == "" || s.What == worker || isPuller(worker) && isBetween(s.What)
		return its && s.From.Before(to) && s.To.After(from)
	}
	if slices.ContainsFunc(h.frozen, overlaps) {
		return true
	}
	return slices.ContainsFunc(h.faults, func(f *fault) bool {
		return slices.ContainsFunc(f.cutOff, func(name string) bool {
			return overlaps(installation.Interval{What: name, From: f.from, To: f.healed})
		})
	})
}

func isPuller(process string) bool { return strings.HasPrefix(process, installation.Puller+"-") }

// isBetween reports whether a process is between a pull worker and the scheduler.
func isBetween(process string) bool {
	function, _, _ := strings.Cut(process, "-")
	return slices.Contains([]string{"gateway", "pull", "serve"}, function)
}

// during reports whether a fault was active at any moment between from and to.
func (h *history) during(from, to time.Time) bool {
	return slices.ContainsFunc(h.faults, func(f *fault) bool { return f.from.Before(to) && f.healed.After(from) })
}
