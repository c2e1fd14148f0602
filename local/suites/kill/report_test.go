package kill

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	storiesMost  = 3
	findingsMost = 30
	logLinesMost = 60
)

// report fails the test with the findings, and logs the histories of the first jobs concerned.
func (h *fixture) report(e *evidence) {
	h.t.Helper()
	for _, f := range e.findings[:min(len(e.findings), findingsMost)] {
		h.t.Errorf("%s %s", f.job, f.text)
	}
	if n := len(e.findings) - findingsMost; n > 0 {
		h.t.Errorf("and %d findings more", n)
	}
	var delivered []string
	for _, f := range e.findings {
		if f.job != "" && !slices.Contains(delivered, f.job) && len(delivered) < storiesMost {
			delivered = append(delivered, f.job)
			h.t.Log(h.story(e, f.job))
		}
	}
}

// story returns all that is known of a job.
func (h *fixture) story(e *evidence, id string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The story of %s\n", id)
	from, to := time.Time{}, time.Now()
	job := e.jobs[id]
	if job != nil {
		from = job.CreatedAt
		fmt.Fprintf(&b, "API: %s\n", job.raw)
		if o := e.orders[job.key()]; o != nil {
			fmt.Fprintf(&b, "asked as %s at %s by %s, accepted at %s, commands %v, seen cancelled at %s: %s\n",
				o.key, clock(o.asked), o.how, clock(o.accepted), o.commands, clock(o.cancelled), o.body)
		}
	}
	for _, r := range e.ran[id] {
		fmt.Fprintf(&b, "witness: attempt %d in %s, start %s, end %s %s\n", r.attempt, r.process, clock(r.start), clock(r.end), r.how)
	}
	for _, life := range e.lives {
		if slices.ContainsFunc(e.ran[id], func(r run) bool { return r.process == life.name }) {
			fmt.Fprintf(&b, "%s lived from %s to %s, frozen %d times\n", life.name, clock(life.began), clock(life.ended), len(life.frozen))
			for _, f := range life.frozen {
				fmt.Fprintf(&b, "%s frozen from %s to %s\n", life.name, clock(f.from), clock(f.to))
			}
		}
	}
	if job != nil && len(job.History) > 0 {
		to = job.History[len(job.History)-1].At
	}
	for _, f := range e.chaos.faults {
		if f.to.After(from.Add(-5*time.Second)) && f.from.Before(to.Add(5*time.Second)) {
			fmt.Fprintf(&b, "from %s to %s down: %s\n", clock(f.from), clock(f.to), f.target)
		}
	}
	for _, line := range h.grep(id) {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// grep returns the lines of all logs that name a job.
func (h *fixture) grep(id string) (lines []string) {
	logs, _ := filepath.Glob(filepath.Join(h.dir, "*.log"))
	for _, name := range logs {
		file, err := os.Open(name)
		if err != nil {
			continue
		}
		scan := bufio.NewScanner(file)
		scan.Buffer(nil, 1<<20)
		for scan.Scan() && len(lines) < logLinesMost {
			if strings.Contains(scan.Text(), id) {
				lines = append(lines, filepath.Base(name)+": "+scan.Text())
			}
		}
		_ = file.Close()
	}
	return lines
}

// checkLogs looks for Go's output of a panic, or for a report of the race detector.
func (h *fixture) checkLogs() {
	h.t.Helper()
	for _, p := range h.processes {
		text, err := os.ReadFile(p.log)
		if err != nil {
			h.t.Error(err)
		}
		for _, sign := range []string{"\npanic: ", "\nfatal error: ", "\nWARNING: DATA RACE"} {
			if _, after, found := strings.Cut(string(text), sign); found {
				h.t.Errorf("%s: %s%.2000s", filepath.Base(p.log), sign[1:], after)
			}
		}
	}
}

// tail returns the end of a file.
func tail(path string, n int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-n):])
}
