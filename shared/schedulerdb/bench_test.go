package schedulerdb

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// BenchmarkJob ingests and completes jobs, in batches or one by one, and builds the events. It reports the processor time
// of the backend that each half takes.
func BenchmarkJob(b *testing.B) {
	for _, batch := range []int{1, 500} {
		b.Run(strconv.Itoa(batch), func(b *testing.B) { benchmarkJobs(b, batch, 0) })
	}
	b.Run("500 with 1 KiB", func(b *testing.B) { benchmarkJobs(b, 500, 768) })
}

// benchmarkJobs gives each job this many random bytes, in base64.
func benchmarkJobs(b *testing.B, batch, random int) {
	url := pgtest.Database(b, migrations.Scheduler) + "&pool_max_conns=1" // so that one backend has all of the time
	store, err := Open(b.Context(), url, Config{Lease: time.Minute, MaxLost: 3})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	h := bench{b, store}
	h.must(h.Heartbeat(b.Context(), []jobevent.Heartbeat{{
		WorkerID: "w1", Slots: 1000, Partitions: map[string][]int32{"default": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
	}}))
	h.exec("UPDATE workers SET seen_at = now() + interval '1 h'")
	h.exec("CHECKPOINT")
	var ingesting, settling time.Duration
	for n := 0; n < b.N; n += batch {
		jobs := newJobs(batch)
		for i := range jobs {
			if random > 0 {
				bytes := make([]byte, random)
				_, _ = rand.Read(bytes)
				jobs[i].Payload = json.RawMessage(`{"data":"` + base64.StdEncoding.EncodeToString(bytes) + `"}`)
			}
		}
		before, _ := h.spent()
		effects := h.must(h.Ingest(b.Context(), jobs))
		between, _ := h.spent()
		if _, err := effects.Events("ingest"); err != nil || len(effects.Runs) != batch {
			b.Fatal(len(effects.Runs), err)
		}
		outcomes := make([]Outcome, len(jobs))
		for i, job := range jobs {
			outcomes[i] = completed(job, 1)
		}
		effects = h.must(h.Settle(b.Context(), outcomes))
		after, _ := h.spent()
		if _, err := effects.Events("outcome"); err != nil || len(effects.Jobs) != batch {
			b.Fatal(len(effects.Jobs), err)
		}
		ingesting, settling = ingesting+between-before, settling+after-between
	}
	jobs := float64(max(b.N, batch))
	b.ReportMetric(ingesting.Seconds()*1e6/jobs, "ingest-backend-µs/job")
	b.ReportMetric(settling.Seconds()*1e6/jobs, "settle-backend-µs/job")
}

// BenchmarkWaitingJob ingests jobs in requests of 500 while there is no room, and then settles and dispatches a hundred
// at a time, with a row for each job that waits, and with cohorts. It reports the processor time of the backend and the
// WAL of a job.
func BenchmarkWaitingJob(b *testing.B) {
	for _, members := range []int{1, 8, jobevent.BlockSize} {
		b.Run("members="+strconv.Itoa(members), func(b *testing.B) { benchmarkWaiting(b, members) })
	}
}

func benchmarkWaiting(b *testing.B, members int) {
	const request, batch = 500, 100
	url := pgtest.Database(b, migrations.Scheduler) + "&pool_max_conns=1" // so that one backend has all of the time
	store, err := Open(b.Context(), url, Config{Lease: time.Hour, MaxLost: 3})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	store.cohort = members
	h := bench{b, store}
	h.exec("CHECKPOINT")
	cpu, wal := h.spent()
	for n := 0; n < b.N; n += request {
		h.must(h.Ingest(b.Context(), newJobs(request)))
	}
	cpuAfter, walAfter := h.spent()
	jobs := float64((b.N + request - 1) / request * request)
	b.ReportMetric((cpuAfter-cpu).Seconds()*1e6/jobs, "ingest-µs/job")
	b.ReportMetric(float64(walAfter-wal)/jobs, "ingest-WAL-B/job")
	out := h.must(h.Heartbeat(b.Context(), []jobevent.Heartbeat{{
		WorkerID: "w1", Slots: batch, Partitions: map[string][]int32{"default": {0}},
	}})).Runs
	h.exec("UPDATE workers SET seen_at = now() + interval '1 h'")
	settled := 0
	for cpu, wal = h.spent(); len(out) > 0; settled += batch {
		outcomes := make([]Outcome, len(out))
		for i, run := range out {
			outcomes[i] = completed(jobevent.Created{JobID: run.JobID}, int(run.Attempt))
		}
		out = h.must(h.Settle(b.Context(), outcomes)).Runs
	}
	cpuAfter, walAfter = h.spent()
	b.ReportMetric((cpuAfter-cpu).Seconds()*1e6/float64(settled), "rest-µs/job")
	b.ReportMetric(float64(walAfter-wal)/float64(settled), "rest-WAL-B/job")
}

// BenchmarkDispatchingABacklog ingests a hundred jobs, settles a hundred and dispatches the next, while the given
// number waits, of that number of fairness keys. The server has no statistics about them. With -v it prints the plan
// that finds them.
func BenchmarkDispatchingABacklog(b *testing.B) {
	for _, waiting := range []int{5_000, 5_000_000} {
		b.Run(strconv.Itoa(waiting), func(b *testing.B) { benchmarkBacklog(b, waiting, 0, 0) })
	}
	b.Run("5000000,keys=10000", func(b *testing.B) { benchmarkBacklog(b, 5_000_000, 10_000, 0) })
	for _, keys := range []int{0, 1, 2, 20, 100, 10_000} {
		b.Run(fmt.Sprintf("100000,keys=%d", keys), func(b *testing.B) { benchmarkBacklog(b, 100_000, keys, 0) })
	}
	// The same rows go out as with 10,000 keys, but by their rank.
	b.Run("100000,ranks=10000", func(b *testing.B) { benchmarkBacklog(b, 100_000, 0, 10_000) })
}

// backlogPart is how many rows one statement can insert within its timeout.
const backlogPart = 500_000

// benchmarkBacklog gives the waiting jobs a number of keys, or ranks in the order in which that many keys would take
// turns.
func benchmarkBacklog(b *testing.B, waiting, keys, ranks int) {
	const batch = 100
	plans := &pgtest.Plans{}
	url := pgtest.Database(b, migrations.Scheduler) + "&pool_max_conns=1" // so that one backend has all of the time
	options := []pgpool.Option{pgpool.IndexOnly(), pgpool.PlannedOnce()}
	if testing.Verbose() { // to explain each statement costs more than some of them
		options = append(options, plans.Watch())
	}
	pool, err := pgpool.Open(b.Context(), url, options...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	h := bench{b, &Store{pool: pool, cfg: Config{Lease: time.Hour, MaxLost: 3}}}
	h.exec("ALTER TABLE jobs SET (autovacuum_enabled = off)")
	for from := 0; from < waiting; from += backlogPart {
		h.exec(`INSERT INTO jobs (job_id, trace_id, job_type, queue, payload, spec, status,
				rank, history, created_at, fairness_key)
			SELECT uuidv7(), uuidv7(), 'A', 'default', '1', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', 'PENDING', now() - interval '1 h' + place * interval '0.5 ms',
				'{"at": "2026-01-01T00:00:00Z", "to": "PENDING"}', now(),
				CASE WHEN $3 = 0 THEN '' ELSE 'key-' || n % $3 END
			FROM (SELECT n, $1 + row_number() OVER (ORDER BY n / $4, ('key-' || n % $4) COLLATE "C") AS place
				FROM generate_series($1::int, $2::int) n) numbered
			ORDER BY n`, from+1, min(from+backlogPart, waiting), keys, max(ranks, 1))
	}
	h.exec("CHECKPOINT")
	out := h.must(h.Heartbeat(b.Context(), []jobevent.Heartbeat{{
		WorkerID: "w1", Slots: batch, Partitions: map[string][]int32{"default": {0}},
	}})).Runs
	h.exec("UPDATE workers SET seen_at = now() + interval '1 h'")
	counted, err := h.Count(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	out = append(out, h.must(h.AskAgain(b.Context(), counted, 0)).Runs...)
	plans.Forget()
	backendBefore, walBefore := h.spent()
	for n := 0; b.Loop(); n++ {
		if len(out) != batch {
			b.Fatalf("%d are out in round %d", len(out), n)
		}
		outcomes := make([]Outcome, len(out))
		for i, run := range out {
			outcomes[i] = completed(jobevent.Created{JobID: run.JobID}, int(run.Attempt))
		}
		jobs := newJobs(batch)
		for i := range jobs {
			if keys > 0 {
				jobs[i].FairnessKey = "key-" + strconv.Itoa((n*batch+i)%keys)
			}
		}
		if effects := h.must(h.Ingest(b.Context(), jobs)); len(effects.Runs) > 0 {
			b.Fatalf("%d new jobs went before those that waited", len(effects.Runs))
		}
		out = h.must(h.Settle(b.Context(), outcomes)).Runs
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*batch), "µs/job")
	backend, wal := h.spent()
	b.ReportMetric((backend-backendBefore).Seconds()*1e6/float64(b.N*batch), "backend-µs/job")
	b.ReportMetric(float64(wal-walBefore)/float64(b.N*batch), "WAL-B/job")
	for _, statement := range []string{"JobsDispatch", "KeysBest"} {
		if seen := plans.Seen()[statement]; len(seen) > 0 {
			b.Logf("%s with %d waiting:\n%s", statement, waiting, planText(seen[len(seen)-1], ""))
		}
	}
}

func planText(n pgtest.Node, indent string) string {
	text := fmt.Sprintf("%s%s %s %s: %.0f rows, %d blocks\n",
		indent, n.Type, n.Relation, n.Index, n.Rows*n.Loops, n.Hit+n.Read)
	for _, child := range n.Plans {
		text += planText(child, indent+"  ")
	}
	return text
}

// bench is a store that fails its benchmark.
type bench struct {
	*testing.B
	*Store
}

func (h bench) exec(sql string, args ...any) {
	h.Helper()
	if _, err := h.pool.Exec(h.Context(), sql, args...); err != nil {
		h.Fatal(err)
	}
}

// spent returns the processor time of the store's only backend, by Linux, and the position in the WAL, in bytes.
func (h bench) spent() (backend time.Duration, wal int64) {
	h.Helper()
	var pid int
	err := h.pool.QueryRow(h.Context(), "select pg_backend_pid(), (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&pid, &wal)
	if err != nil {
		h.Fatal(err)
	}
	schedstat, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		h.Skip("no processor time of a process: ", err)
	}
	var nanoseconds int64
	if _, err := fmt.Sscan(string(schedstat), &nanoseconds); err != nil {
		h.Fatal(err)
	}
	return time.Duration(nanoseconds), wal
}

func (h bench) must(effects emit.Effects, err error) emit.Effects {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
	return effects
}
