package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
	"github.com/jobweaver/jobweaver/shared/retry"
)

const (
	warmUp      = 5 * time.Second
	drainWithin = 3 * time.Minute
	// fitsAll is how long a run must be for every kind of fault to be made.
	fitsAll = 8 * time.Minute
	// leastJobs is how many jobs a second a run must accept at least, on average.
	leastJobs = 4
)

// runOnce makes one run, and reports whether every promise was kept.
func runOnce(ctx context.Context, cfg config) (good bool, err error) {
	logLine(fmt.Sprintf("seed %d, again with CHAOS_SEED=%d; building the functions", cfg.seed, cfg.seed))
	bin, err := os.MkdirTemp("", "jobweaver-chaos-bin-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(bin) }()
	names, err := installation.Build(bin, cfg.pair)
	if err != nil {
		return false, err
	}
	began := time.Now()
	h, err := installation.Open(ctx, bin, names, logLine)
	if h != nil {
		defer func() {
			if err = errors.Join(err, h.Close()); good && !cfg.keep {
				_ = os.RemoveAll(h.Dir)
			} else {
				logLine("logs, the witness's file and the evidence are in " + h.Dir)
			}
		}()
	}
	if err != nil {
		return false, err
	}
	processes := len(h.Processes()) + len(h.Brokers) + 2
	logLine(fmt.Sprintf("%d processes are ready after %s", processes, seconds(time.Since(began))))
	kinds := chosen(allKinds(h), cfg.only)
	hist, c, l, err := liveThrough(ctx, h, cfg, kinds)
	if err != nil {
		return false, err
	}
	v := hist.check()
	hist.checkHappened(v, cfg.span, kinds)
	report := writeReport(cfg, hist, v, c, l)
	if err := keepEvidence(h, report, hist, v); err != nil {
		return false, err
	}
	fmt.Println(report)
	return len(v.violations) == 0, nil
}

// liveThrough submits jobs, makes faults, heals, waits until everything has ended, and collects the history.
func liveThrough(
	ctx context.Context, h *installation.Installation, cfg config, kinds []*kind,
) (*history, *chaos, *load, error) {
	follow, unfollow := context.WithCancel(ctx)
	defer unfollow()
	l := newLoad(follow, h, cfg.seed)
	c := &chaos{system: h, load: l, rnd: rand.New(rand.NewPCG(cfg.seed, 0)), ctx: ctx}
	l.setLimit()
	from := time.Now()
	l.startSchedules()
	submitting, stop := context.WithCancel(ctx)
	defer stop()
	l.run(submitting)
	retry.Pause(ctx, warmUp)
	c.run(ctx, cfg.span, kinds)
	if ctx.Err() != nil {
		return nil, nil, nil, ctx.Err()
	}
	logLine("the last fault has healed; waiting until all jobs have ended")
	healed := time.Now()
	if err := errors.Join(h.Postgres.AwaitAll(ctx), h.AwaitReady(ctx, h.Functions...)); err != nil {
		c.breaks("after the last fault: %v", err)
	}
	retry.Pause(ctx, tickEvery) // the schedules catch up on missed ticks
	stop()
	until := time.Now()
	l.stopSchedules()
	waited(&l.submitting, drainWithin)
	if err := drain(ctx, h, c, l); err != nil {
		c.breaks("%v", err)
	}
	drained := time.Since(healed)
	if !waited(&l.following, drainWithin) {
		c.breaks("cancelled jobs have not ended")
	}
	hist, err := collect(ctx, h, c, l)
	if err != nil {
		return nil, nil, nil, err
	}
	hist.from, hist.until, hist.drained = from, until, drained
	return hist, c, l, nil
}

// waited waits for a group; false: it took too long.
func waited(group *sync.WaitGroup, d time.Duration) bool {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// checkHappened: a run in which little happened proves nothing.
func (h *history) checkHappened(v *verdict, span time.Duration, kinds []*kind) {
	accepted := 0
	for _, o := range h.orders {
		if o.id != "" {
			accepted++
		}
	}
	if least := int(leastJobs * span.Seconds()); accepted < least {
		v.find("enough happened", "", "%d jobs were accepted, at least %d are wanted", accepted, least)
	}
	made := map[string]bool{}
	for _, f := range h.faults {
		for _, name := range f.kinds {
			made[name] = true
		}
	}
	for _, k := range kinds {
		if !made[k.name] && span >= fitsAll {
			v.find("enough happened", "", "%q was never made", k.name)
		}
	}
	together := 0
	for _, runs := range h.runs {
		for _, r := range runs {
			together = max(together, r.beside)
		}
	}
	if together < 2 {
		v.find("enough happened", "", "no batch handler got two jobs together")
	}
	seen := map[string]int{}
	for id, j := range h.jobs {
		if o := h.orders[j.key()]; o != nil && (len(h.runs[id]) > 0 || o.shape.unseen || o.shape.mayNever) {
			seen[o.shape.name]++
		}
	}
	for _, s := range slices.Concat(shapes, []*shape{
		batchShape, orderedShape, parentShape, badParent, childShape, orphanShape, bulkShape,
		outputShape, undoShape, skippedShape, memberShape, badMember, nextShape, waitingShape, calledShape, togetherShape,
		forsakenShape, leftShape,
	}) {
		if seen[s.name] == 0 {
			v.find("enough happened", "", "no job of the shape %q was done", s.name)
		}
	}
}

// keepEvidence writes the report, and the log lines about the jobs concerned.
func keepEvidence(h *installation.Installation, report string, hist *history, v *verdict) error {
	const most = 20
	var text strings.Builder
	text.WriteString(report)
	logged := map[string]bool{}
	for _, found := range v.violations {
		if found.job == "" || logged[found.job] || len(logged) == most {
			continue
		}
		logged[found.job] = true
		fmt.Fprintf(&text, "\n## %s\n", found.job)
		if j := hist.jobs[found.job]; j != nil {
			fmt.Fprintf(&text, "%+v\n", *j)
		}
		for _, r := range hist.runs[found.job] {
			fmt.Fprintf(&text, "witness: attempt %d from %s to %s %s %s\n",
				r.attempt, clockTime(r.start), clockTime(r.end), r.how, r.in)
		}
		for _, l := range hist.steps {
			if l.Job == found.job {
				fmt.Fprintf(&text, "witness: attempt %d at %s %s %s: %s\n", l.Attempt, clockTime(l.At), l.What, l.Name, l.ID)
			}
		}
		for _, line := range grepLogs(h, found.job, 40) {
			text.WriteString(line + "\n")
		}
	}
	return os.WriteFile(h.Path("evidence.md"), []byte(text.String()), 0o600)
}

// grepLogs returns lines of all logs that contain a text.
func grepLogs(h *installation.Installation, text string, most int) (lines []string) {
	for _, name := range logFiles(h) {
		content, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(content)) {
			if len(lines) < most && strings.Contains(line, text) {
				lines = append(lines, filepath.Base(name)+": "+strings.TrimSpace(line))
			}
		}
	}
	return lines
}

func logFiles(h *installation.Installation) []string {
	names, _ := filepath.Glob(h.Path("*.log"))
	return names
}

// panics returns the output of Go panics in the logs.
func panics(h *installation.Installation) (found []string) {
	for _, name := range logFiles(h) {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for _, sign := range []string{"\npanic: ", "\nfatal error: ", "\nWARNING: DATA RACE"} {
			if _, after, is := strings.Cut(string(text), sign); is {
				found = append(found, fmt.Sprintf("%s: %s%.2000s", filepath.Base(name), sign[1:], after))
			}
		}
	}
	return found
}

// sortedKeys returns the sorted keys of a map.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
