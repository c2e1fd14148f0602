package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/jobweaver/jobweaver/local/load/figures"
)

// table prints the measured parts, one line for each figure.
func table(out io.Writer, r figures.Results, parts []string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(what, format string, args ...any) { fmt.Fprintf(w, what+"\t"+format+"\n", args...) }
	asked := func(part string) bool { return slices.Contains(parts, part) }
	if r.Throughput != nil && asked("throughput") {
		tableThroughput(line, r.Throughput)
	}
	if asked("latency") {
		tableLatencies(line, r.Latency)
	}
	if asked("backlog") {
		for _, c := range r.Backlog {
			line("dispatch, "+c.Case, "%.0f jobs/s, %.2f of few; %d waiting, %d scheduled; POST p50 %.1f p99 %.1f ms",
				c.JobsPerS, c.Ratio, c.Waiting, c.Scheduled, c.Post.P50, c.Post.P99)
		}
	}
	if k := r.Keys; k != nil && asked("keys") {
		line(fmt.Sprintf("%d fairness keys", k.Keys), "%.2f as fast as one (%.2f–%.2f): %.0f and %.0f jobs/s; %d waiting",
			k.Ratio.Median, k.Ratio.Min, k.Ratio.Max, k.Many.Median, k.One.Median, k.Waiting)
	}
	if s := r.Scale; s != nil && asked("scale") {
		for _, step := range s.Steps {
			line(fmt.Sprintf("%d workers", step.Workers), "%.0f jobs/s, %.2f of the ideal", step.JobsPerS, step.Fraction)
		}
		for _, pause := range s.Pauses {
			line("pause, "+pause.Case, "%.0f ms", pause.Ms)
		}
	}
	if c := r.Cost; c != nil && asked("cost") {
		tableCost(line, c)
	}
	if s := r.Soak; s != nil && asked("soak") && len(s.Minutes) > 0 {
		line("soak, first", "%s", minuteLine(s.Minutes[0]))
		line("soak, last", "%s", minuteLine(s.Minutes[len(s.Minutes)-1]))
	}
	if i := r.Idle; i != nil && asked("idle") {
		line("idle", "functions %.1f %% of a core, %.0f wake-ups/s, %.0f MiB; PostgreSQL %.1f %%, %.0f wake-ups/s",
			i.FunctionsCPU, i.FunctionsWakeUps, i.FunctionsMiB, i.PostgresCPU, i.PostgresWakeUps)
	}
	if s := r.Streams; s != nil && asked("streams") {
		line(fmt.Sprintf("%d streams, a burst", s.Open), "%.2f as fast (%.2f–%.2f), %.2f of the functions' CPU (%.2f–%.2f)",
			s.Speed.Median, s.Speed.Min, s.Speed.Max, s.FunctionsCPU.Median, s.FunctionsCPU.Min, s.FunctionsCPU.Max)
		line(fmt.Sprintf("%d streams, %d/s", s.Open, s.Rate), "%+.1f %% of a core (%+.1f to %+.1f)",
			s.Core.Median*100, s.Core.Min*100, s.Core.Max*100)
	}
	if o := r.Outbox; o != nil && asked("outbox") {
		line(fmt.Sprintf("POST→start at %d/s", o.Rate), "%s", o.Post)
		line(fmt.Sprintf("commit→start at %d/s", o.Rate), "%s; p50 %+.1f ms", o.Commit, o.Commit.P50-o.Post.P50)
		line(fmt.Sprintf("outbox, %d jobs", o.Jobs), "%.0f jobs/s taken, %.0f/s ended, relay %.0f µs of CPU a job",
			o.TakenPerS, o.EndedPerS, o.RelayCPU)
		line("idle relay", "%.2f %% of a core, %.0f MiB", o.IdleCPU, o.IdleMiB)
	}
	if p := r.Pull; p != nil && asked("pull") {
		line(fmt.Sprintf("POST→start at %d/s, Go worker", p.Rate), "%s", p.Worker)
		line(fmt.Sprintf("POST→start at %d/s, pull worker", p.Rate), "%s; p50 %+.1f ms", p.Puller, p.Puller.P50-p.Worker.P50)
		line(fmt.Sprintf("%d pull workers, %d jobs", p.Pullers, p.Jobs), "%.0f jobs/s", p.JobsPerS)
		line("pull workers, CPU µs a job", "%s", processes(p.CPU))
		line(fmt.Sprintf("%d idle pull workers", p.Idle), "%.2f %% of a core, %.0f MiB", p.IdleCPU, p.IdleMiB)
	}
	tableKits(line, asked("kits"), r.Kits)
	tableWaits(line, asked("waits"), r.Waits)
	if p := r.Payload; p != nil && asked("payload") {
		tableThroughput(line, p.Throughput)
		tableLatencies(line, p.Latency)
	}
	if k := r.Retention; k != nil && asked("retention") {
		for _, keeps := range k.Keeps {
			line(fmt.Sprintf("POST→start at %d/s, %d old jobs", k.Rate, k.OldJobs), "%s", keeps)
		}
		line("the same while they are deleted", "%s", k.Deletes)
		line("deleted", "%.0f jobs/s, %.0f µs of CPU a job", k.DeletedPerS, k.DeletedCPU)
	}
	tableAudit(line, asked("audit"), r.Audit)
	if h := r.HTTP; h != nil && asked("http") {
		tableHTTP(line, h)
	}
	tableNeighbours(line, asked("neighbours"), r.Neighbours)
	if asked("peers") {
		tablePeers(line, r.Peers)
	}
	return w.Flush()
}

func tableAudit(line liner, asked bool, a *figures.Audit) {
	if a == nil || !asked {
		return
	}
	for i := range a.On {
		line(fmt.Sprintf("single POSTs at %d/s, AUTH=off", a.Rate), "%s", a.Off[i])
		line("the same, AUTH=on", "%s; %.0f entries deleted/s", a.On[i], a.ForgottenPerS[i])
	}
}

func tablePeers(line liner, peers []figures.Peer) {
	for _, p := range peers {
		line(p.Name+" "+p.Version, "%.0f jobs/s (%.0f–%.0f), %.0f µs of CPU a job; to start at %d/s: p50 %.1f, p99 %.1f ms",
			p.JobsPerS.Median, p.JobsPerS.Min, p.JobsPerS.Max, p.CPU.Median, peerRate, p.StartP50.Median, p.StartP99.Median)
	}
}

func tableHTTP(line liner, h *figures.HTTP) {
	var kafka, http []float64
	for _, round := range h.Rounds {
		kafka, http = append(kafka, round.Kafka.JobsPerS), append(http, round.HTTP.JobsPerS)
	}
	for name, rates := range map[string][]float64{"Kafka": kafka, "HTTP": http} {
		rate := figures.SpreadOf(rates)
		line("a process a function, "+name, "%.0f jobs/s (%.0f–%.0f)", rate.Median, rate.Min, rate.Max)
	}
	line("HTTP / Kafka", "%.2f (%.2f–%.2f)", h.Ratio.Median, h.Ratio.Min, h.Ratio.Max)
}

type liner func(what, format string, args ...any)

func tableThroughput(line liner, t *figures.Throughput) {
	for _, name := range []string{figures.Yardstick, embedded, apache} {
		rate, measured := t.JobsPerS[name]
		if !measured {
			continue
		}
		line(name, "%.0f jobs/s (%.0f–%.0f)", rate.Median, rate.Min, rate.Max)
		if ratio, ours := t.Ratios[name]; ours {
			line(name+" / river", "%.3f (%.3f–%.3f)", ratio.Median, ratio.Min, ratio.Max)
		}
		line(name+", CPU µs a job", "%s", processes(figures.MeanCPU(t.Rounds, name)))
		line(name+", PostgreSQL µs a job", "%s", each(figures.MeanDatabases(t.Rounds, name)))
		if name != figures.Yardstick {
			line(name+", busiest database / river", "%.2f", figures.Busiest(figures.MeanDatabases(t.Rounds, name))/
				figures.Busiest(figures.MeanDatabases(t.Rounds, figures.Yardstick)))
		}
	}
}

// tableLatencies prints each contestant at each rate, and then how it compares with River.
func tableLatencies(line liner, latencies []figures.Latency) {
	river := map[int]figures.Latency{}
	for _, l := range latencies {
		tableLatency(line, l)
		if l.Contestant == figures.Yardstick {
			river[l.Rate] = l
		}
	}
	for _, l := range latencies {
		if beside, measured := river[l.Rate]; measured && l.Contestant != figures.Yardstick {
			line(fmt.Sprintf("%s / river at %d/s", l.Contestant, l.Rate),
				"%.2f of the start p50, %.2f of the CPU, %.2f of the flushes",
				l.Start.P50/beside.Start.P50, l.CPU()/beside.CPU(), l.Flushes/beside.Flushes)
		}
	}
}

func tableLatency(line liner, l figures.Latency) {
	at := fmt.Sprintf("%s at %d/s, ", l.Contestant, l.Rate)
	if l.Contestant == figures.Yardstick {
		line(at+"insert", "%s", l.Post)
		line(at+"insert→start", "%s", l.Start)
		line(at+"a job", "%s", usesOf(l))
		return
	}
	line(at+"POST", "%s", l.Post)
	line(at+"POST→start", "%s", l.Start)
	line(at+"POST→COMPLETED", "%s", l.Completed)
	line(at+"a job", "%s", usesOf(l))
	if l.Refused > 0 {
		line(at+"refused", "%d", l.Refused)
	}
}

// usesOf returns the use of each process per job: processor time, and switches of its threads.
func usesOf(l figures.Latency) string {
	var text strings.Builder
	for _, process := range slices.Sorted(maps.Keys(l.Uses)) {
		fmt.Fprintf(&text, "%s %.1f ms, %.0f switches; ", process, l.Uses[process].CPU/1000, l.Uses[process].Switches)
	}
	fmt.Fprintf(&text, "%.1f WAL flushes; PostgreSQL µs: %s", l.Flushes, each(l.Databases))
	return text.String()
}

func tableCost(line liner, c *figures.Cost) {
	for _, name := range []string{embedded, apache} {
		if cpu, measured := c.CPU[name]; measured {
			line("CPU µs a job, "+name, "%s", processes(cpu))
		}
	}
	for _, m := range c.Memory {
		line("memory, "+m.Contestant+", "+m.Process, "%.0f MiB at rest, %.0f at its peak", m.Rest, m.Peak)
	}
	line("a job", "%s", counts(c))
	for _, t := range c.Tables {
		line("  "+t.Database+"."+t.Table, "%.2f inserts, %.2f updates (%.2f HOT), %.2f deletes, %.0f bytes",
			t.Inserts, t.Updates, t.HotUpdates, t.Deletes, t.Bytes)
	}
	for _, s := range c.TopStatements {
		line(fmt.Sprintf("  %.1f µs a job", s.Micros), "%d calls, %.2f rows a job, %s: %s",
			s.Calls, s.Rows, s.Database, s.Text)
	}
}

// guard prints the one line with which a build is compared.
func guard(out io.Writer, r figures.Results) {
	ratio := func(name string) string {
		if r.Throughput == nil || r.Throughput.Ratios[name].Median == 0 {
			return "none"
		}
		return fmt.Sprintf("%.3f", r.Throughput.Ratios[name].Median)
	}
	p50, p99 := "none", "none"
	for _, l := range r.Latency {
		if l.Contestant == embedded && l.Rate == 100 {
			p50, p99 = fmt.Sprintf("%.1f", l.Start.P50), fmt.Sprintf("%.1f", l.Start.P99)
		}
	}
	fmt.Fprintf(out, "ratio_embedded=%s ratio_apache=%s start_p50_ms=%s start_p99_ms=%s\n",
		ratio(embedded), ratio(apache), p50, p99)
}

func tableKits(line func(what, format string, args ...any), asked bool, k *figures.Kits) {
	if k == nil || !asked {
		return
	}
	for _, kit := range slices.Sorted(maps.Keys(k.Seconds)) {
		rounds := slices.Sorted(slices.Values(k.Seconds[kit]))
		line(fmt.Sprintf("%d no-ops with %d slots, kit in %s", k.Jobs, k.Slots, kit), "%.2f s", rounds)
	}
}

func tableWaits(line liner, asked bool, w *figures.Waits) {
	if w == nil || !asked {
		return
	}
	line("event that is there, in the handler", "%s", w.Asked)
	line(fmt.Sprintf("%d jobs that wait for an event", w.Jobs),
		"%d of %d slots; %.0f bytes each in the worker, %.0f in the functions",
		w.Taken, w.Slots, w.WorkerBytes, w.FunctionsBytes)
	line("the same, woken", "%d jobs, all ended %.1f s after the first event", w.Woken, w.Seconds)
}

func tableNeighbours(line func(what, format string, args ...any), asked bool, neighbours []figures.Neighbour) {
	if !asked {
		return
	}
	for _, n := range neighbours {
		line(n.Case+", beside "+n.Beside, "p50 %.1f → %.1f, p95 %.1f → %.1f ms",
			n.Alone.P50, n.With.P50, n.Alone.P95, n.With.P95)
	}
}
