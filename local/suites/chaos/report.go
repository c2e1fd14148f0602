package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// row summarises all faults of one kind.
type row struct {
	made, doubled int
	first         []time.Duration
	cleared       []time.Duration
	gaps          []time.Duration
}

func (r *row) add(f *fault) {
	r.made++
	if len(f.kinds) > 1 {
		r.doubled++
	}
	r.first, r.cleared, r.gaps = append(r.first, f.first), append(r.cleared, f.cleared), append(r.gaps, f.gap)
}

// writeReport returns the report of the run as Markdown.
func writeReport(cfg config, hist *history, v *verdict, c *chaos, l *load) string {
	all, byKind := &row{}, map[string]*row{}
	for _, f := range c.faults {
		all.add(f)
		for _, name := range f.kinds {
			if byKind[name] == nil {
				byKind[name] = &row{}
			}
			byKind[name].add(f)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# make chaos CHAOS_SEED=%d CHAOS_FOR=%s\n\n", cfg.seed, cfg.span)
	b.WriteString("| faults (two at a time) | jobs accepted | cron jobs | attempts seen | requests repeated | lost | " +
		"doubled | violations | first end after heal p50 / p99 / max | cleared after heal p50 / p99 / max | drained |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|\n")
	accepted, cron, starts := hist.counts()
	fmt.Fprintf(&b, "| %d (%d) | %d | %d | %d | %d | %d | %d | %d | %s | %s | %s |\n\n",
		all.made, all.doubled, accepted, cron, starts, l.unanswered, v.lost, v.doubled, len(v.violations),
		quantiles(all.first), quantiles(all.cleared), seconds(hist.drained))
	b.WriteString("| fault | times (with another) | first end after heal, max | cleared after heal, max | " +
		"longest time without an end |\n|---|---|---|---|---|\n")
	for _, name := range sortedKeys(byKind) {
		r := byKind[name]
		fmt.Fprintf(&b, "| %s | %d (%d) | %s | %s | %s |\n", name, r.made, r.doubled, seconds(slices.Max(r.first)),
			seconds(slices.Max(r.cleared)), seconds(slices.Max(r.gaps)))
	}
	fmt.Fprintf(&b, "\nExcused, as documented: %d attempts of workers that were frozen or cut off ran beside the next "+
		"one or began late; %d jobs waited for the hour by which PostgreSQL's clock was put back; %d bulk operations were "+
		"repeated, since by that clock their jobs came later. "+
		"%d records on the run-job topics.\n",
		v.excused, c.hourLate, l.ahead, sum(hist.records))
	b.WriteString(violationsByRule(v))
	return b.String()
}

func (h *history) counts() (accepted, cron, starts int) {
	for _, o := range h.orders {
		if o.id != "" {
			accepted++
		}
	}
	for _, j := range h.jobs {
		if j.Schedule != nil {
			cron++
		}
	}
	for _, runs := range h.runs {
		starts += len(runs)
	}
	return accepted, cron, starts
}

func violationsByRule(v *verdict) string {
	if len(v.violations) == 0 {
		return "\nNo violation.\n"
	}
	const most = 10 // violations of a rule
	byRule := map[string][]violation{}
	for _, found := range v.violations {
		byRule[found.rule] = append(byRule[found.rule], found)
	}
	var b strings.Builder
	for _, rule := range sortedKeys(byRule) {
		fmt.Fprintf(&b, "\nVIOLATED %d times: %s\n", len(byRule[rule]), rule)
		for _, found := range byRule[rule][:min(most, len(byRule[rule]))] {
			fmt.Fprintf(&b, "- %s %s\n", found.job, found.text)
		}
	}
	return b.String()
}

func sum(counts map[string]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// quantiles formats the median, the 99th percentile and the maximum.
func quantiles(list []time.Duration) string {
	if len(list) == 0 {
		return "–"
	}
	list = slices.Sorted(slices.Values(list))
	at := func(q float64) string { return seconds(list[int(q*float64(len(list)-1)+0.5)]) }
	return at(0.5) + " / " + at(0.99) + " / " + at(1)
}
