package schedulerdb

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// A store with cohorts and one with a row for each job give the same answers to the same program.
func TestCohortsChangeNothingThatAnyoneSees(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	h := newFixture(t)
	apart, err := Open(t.Context(), pgtest.Database(t, migrations.Scheduler), h.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(apart.Close)
	apart.cohort = 1
	together, separate := h, fixture{t, apart}
	seen := map[string]int{} // members of cohorts, by status
	rapid.Check(t, func(rt *rapid.T) {
		for _, f := range []fixture{together, separate} {
			f.exec(`DELETE FROM jobs; DELETE FROM ended; DELETE FROM cohorts; DELETE FROM dispatched; DELETE FROM ended_cohorts; DELETE FROM dependencies; DELETE FROM order_gaps;
				DELETE FROM controls; DELETE FROM workers; DELETE FROM early_commands`)
			f.exec(`UPDATE dispatch_state SET n = n + 1000, in_flight = '{}', floors = '{}', due_floor = null,
				more = json_build_object('controls', n + 1000)`)
		}
		slots := rapid.IntRange(1, 20).Draw(rt, "slots")
		for _, f := range []fixture{together, separate} {
			f.heartbeat("w1", slots, allPartitions) // without any worker, chance decides how many jobs go out
			f.exec("UPDATE workers SET seen_at = now() + interval '1 h', since = now() - interval '1 h'")
		}
		p := &pair{T: rt, stores: [2]fixture{together, separate}, out: map[uuid.UUID]int{}, seen: seen}
		rt.Repeat(map[string]func(*rapid.T){
			"":          func(*rapid.T) { p.compare() },
			"ingest":    p.ingest,
			"heartbeat": p.heartbeat,
			"settle":    p.settle,
			"resettle":  p.settleAgain,
			"unlisted":  p.unlisted,
			"command":   p.command,
			"control":   p.control,
			"again":     p.again,
		})
		p.compareAll()
	})
	if seen["PENDING"] == 0 || seen["QUEUED"] == 0 || seen["COMPLETED"] == 0 {
		t.Errorf("jobs that shared a row: %v", seen)
	}
}

var allPartitions = []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}

// pair runs the same program on two stores.
type pair struct {
	*rapid.T
	stores   [2]fixture
	jobs     []jobevent.Created
	requests [][]jobevent.Created
	out      map[uuid.UUID]int // attempts
	settled  []Outcome
	numbers  int
	compared int
	seen     map[string]int // by status, the members of cohorts that were there at a comparison
}

func (p *pair) both(what string, do func(fixture) (emit.Effects, error)) {
	var texts [2]string
	for i, store := range p.stores {
		effects, err := do(store)
		if err != nil {
			p.Fatalf("%s: %v", what, err)
		}
		texts[i] = textOf(effects)
		if i == 0 {
			for _, run := range effects.Runs {
				p.out[run.JobID] = int(run.Attempt)
			}
		}
	}
	if texts[0] != texts[1] {
		p.Fatalf("%s: with cohorts\n%s\nwith a row for each job\n%s", what, texts[0], texts[1])
	}
}

// instants are those in a history: the two stores do the same a moment apart.
var instants = regexp.MustCompile(`"(at|startedAt|finishedAt)": ?"[^"]*",?`)

func textOf(effects emit.Effects) string {
	var lines []string
	for _, run := range effects.Runs {
		lines = append(lines, fmt.Sprint("run ", run.JobID, run.TraceID, run.Queue, run.JobType, run.Attempt, string(run.Payload),
			string(run.Spec), run.OwnerID, run.FairnessKey, run.Prompt))
	}
	var jobs []string
	for _, job := range effects.Jobs {
		jobs = append(jobs, fmt.Sprint("job ", job.JobID, job.TraceID, job.Status, job.Version, job.Attempt, job.RetryCount,
			string(job.LastCommand), instants.ReplaceAllString(job.History, "")))
	}
	slices.Sort(jobs)
	return strings.Join(append(lines, slices.Compact(jobs)...), "\n")
}

func (p *pair) ingest(rt *rapid.T) {
	jobs := newJobs(rapid.IntRange(1, 12).Draw(rt, "jobs"))
	owner := rapid.SampledFrom([]string{"", "", "", "acme"}).Draw(rt, "owner")
	kinds := rapid.SampledFrom([][]string{{"A"}, {"A", "B"}}).Draw(rt, "types")
	later := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	for i := range jobs {
		jobs[i].OwnerID, jobs[i].JobType = owner, kinds[i*len(kinds)/len(jobs)]
		jobs[i].Payload, jobs[i].MaxRetryCount = json.RawMessage(fmt.Sprint(i)), 1
		jobs[i].CreatedAt = jobs[i].CreatedAt.Truncate(time.Microsecond)
		switch rapid.IntRange(0, 15).Draw(rt, "kind") {
		case 0:
			jobs[i].RunAt = &later
		case 1:
			jobs[i].Priority = 3
		case 2:
			jobs[i].ExpiresAt = &later
		case 3:
			if len(p.jobs) > 0 {
				jobs[i].After = []uuid.UUID{rapid.SampledFrom(p.jobs).Draw(rt, "after").JobID}
			}
		}
	}
	p.jobs, p.requests = append(p.jobs, jobs...), append(p.requests, jobs)
	p.both("ingest", func(f fixture) (emit.Effects, error) { return f.Ingest(f.Context(), jobs) })
}

func (p *pair) again(rt *rapid.T) {
	if len(p.requests) == 0 {
		return
	}
	jobs := rapid.SampledFrom(p.requests).Draw(rt, "request")
	p.both("ingest again", func(f fixture) (emit.Effects, error) { return f.Ingest(f.Context(), jobs) })
}

// heartbeat lists some attempts that are out, of which some have started.
func (p *pair) heartbeat(rt *rapid.T) {
	slots := rapid.IntRange(1, 20).Draw(rt, "slots")
	var listed []jobevent.ListedAttempt
	for _, id := range p.outIDs() {
		kind := rapid.IntRange(0, 7).Draw(rt, "listed")
		attempt := jobevent.ListedAttempt{JobID: id, Attempt: p.out[id]}
		if now := time.Now(); kind == 0 {
			attempt.StartedAt = &now
		}
		if kind < 2 {
			listed = append(listed, attempt)
		}
	}
	p.both("heartbeat", func(f fixture) (emit.Effects, error) {
		return f.Heartbeat(f.Context(), []jobevent.Heartbeat{{
			WorkerID: "w1", Slots: slots, Partitions: map[string][]int32{"default": allPartitions}, Attempts: listed,
		}})
	})
}

// unlisted lets the leases end. The order of the questions is chance.
func (p *pair) unlisted(*rapid.T) {
	p.both("unlisted", func(f fixture) (emit.Effects, error) {
		f.moveLeases(-time.Hour)
		counted, err := f.Count(f.Context())
		if err != nil {
			return emit.Effects{}, err
		}
		if !counted.drift.Empty() { // AskAgain would correct the ledger
			p.Fatalf("the ledger drifts by %+v", counted.drift)
		}
		effects, err := f.AskAgain(f.Context(), counted, time.Second)
		slices.SortFunc(effects.Runs, func(a, b emit.RunOrder) int { return compareIDs(a.JobID, b.JobID) })
		return effects, err
	})
}

func (p *pair) outIDs() []uuid.UUID { return slices.SortedFunc(maps.Keys(p.out), compareIDs) }

func (p *pair) settle(rt *rapid.T) {
	ids := p.outIDs()
	if len(ids) == 0 {
		return
	}
	from := rapid.IntRange(0, len(ids)-1).Draw(rt, "from")
	var outcomes []Outcome
	for i := range rapid.IntRange(1, min(10, len(ids))).Draw(rt, "outcomes") {
		id := ids[(from+i)%len(ids)] // neighbours, which may share a row
		o := completed(jobevent.Created{JobID: id}, p.out[id])
		if p.out[id] == 0 {
			continue
		}
		if rapid.IntRange(0, 3).Draw(rt, "fails") == 0 {
			o.Kind, o.ErrorCode, o.Output = jobstate.KindFailed, "E", nil
		}
		outcomes = append(outcomes, o)
		delete(p.out, id)
	}
	p.settled = append(p.settled, outcomes...)
	p.both("settle", func(f fixture) (emit.Effects, error) { return f.Settle(f.Context(), slices.Clone(outcomes)) })
}

// settleAgain repeats outcomes.
func (p *pair) settleAgain(rt *rapid.T) {
	if len(p.settled) == 0 {
		return
	}
	from := rapid.IntRange(0, len(p.settled)-1).Draw(rt, "from")
	outcomes := p.settled[from:min(from+3, len(p.settled))]
	p.both("settle again", func(f fixture) (emit.Effects, error) { return f.Settle(f.Context(), slices.Clone(outcomes)) })
}

func (p *pair) command(rt *rapid.T) {
	if len(p.jobs) == 0 {
		return
	}
	soon := time.Now().Add(2 * time.Hour).Truncate(time.Microsecond)
	var commands []jobevent.Command
	for range rapid.IntRange(1, 3).Draw(rt, "commands") {
		p.numbers++
		c := jobevent.Command{
			JobID: rapid.SampledFrom(p.jobs).Draw(rt, "job").JobID, Number: p.numbers, By: "tester",
			Command: rapid.SampledFrom([]string{
				jobevent.CommandCancel, jobevent.CommandRetry, jobevent.CommandReschedule, jobevent.CommandChange, jobevent.CommandDelete,
			}).Draw(rt, "command"),
		}
		switch c.Command {
		case jobevent.CommandReschedule:
			c.RunAt = &soon
		case jobevent.CommandChange:
			c.Change = &jobevent.Change{Payload: json.RawMessage(`"changed"`), Spec: json.RawMessage(`{"priority":5}`)}
		}
		commands = append(commands, c)
	}
	p.both("command", func(f fixture) (emit.Effects, error) { return f.Command(f.Context(), commands) })
}

func (p *pair) control(rt *rapid.T) {
	p.numbers++
	c := jobevent.Control{
		Kind:    rapid.SampledFrom([]jobevent.ControlKind{jobevent.ControlQueue, jobevent.ControlType, jobevent.ControlOwner}).Draw(rt, "kind"),
		Version: int64(p.numbers), Paused: rapid.IntRange(0, 2).Draw(rt, "paused") == 0,
	}
	c.Name = map[jobevent.ControlKind]string{
		jobevent.ControlQueue: "default", jobevent.ControlType: "A", jobevent.ControlOwner: "acme",
	}[c.Kind]
	p.both("control", func(f fixture) (emit.Effects, error) { return f.Control(f.Context(), []jobevent.Control{c}) })
}

// compare compares after each third action. A difference stays, and to compare costs more than an action.
func (p *pair) compare() {
	if p.compared++; p.compared%3 == 0 {
		p.compareAll()
	}
}

// compareAll: each job is in one row, the ledgers agree with the rows, and both stores report the same of all.
func (p *pair) compareAll() {
	for _, store := range p.stores {
		if counted, err := store.Count(store.Context()); err != nil || !counted.drift.Empty() {
			p.Fatalf("the ledger drifts by %+v, %v", counted.drift, err)
		}
		rows, err := store.pool.Query(store.Context(), `SELECT job_id::text FROM (
			SELECT job_id FROM jobs UNION ALL SELECT job_id FROM ended UNION ALL SELECT job_id FROM members) known
			GROUP BY 1 HAVING count(*) > 1`)
		if err != nil {
			p.Fatal(err)
		}
		if twice, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(twice) > 0 {
			p.Fatalf("in two rows: %v, %v", twice, err)
		}
	}
	if len(p.jobs) == 0 {
		return
	}
	rows, err := p.stores[0].pool.Query(p.stores[0].Context(), "SELECT status, count(*) FROM members GROUP BY 1")
	if err != nil {
		p.Fatal(err)
	}
	var status string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&status, &n}, func() error { p.seen[status] += n; return nil }); err != nil {
		p.Fatal(err)
	}
	var reports []jobevent.ReportJob
	for _, job := range p.jobs {
		reports = append(reports, jobevent.ReportJob{JobID: job.JobID})
	}
	report := []jobevent.Command{{Command: jobevent.CommandReport, Reports: reports}}
	p.both("report", func(f fixture) (emit.Effects, error) { return f.Command(f.Context(), report) })
}
