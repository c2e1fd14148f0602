package schedulerdb

import (
	"strconv"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// BenchmarkAPlainJob takes jobs the plain way, in batches or each by itself, and builds what is to be said.
func BenchmarkAPlainJob(b *testing.B) {
	for _, batch := range []int{1, 500} {
		b.Run(strconv.Itoa(batch), func(b *testing.B) { benchmarkPlainJobs(b, batch) })
	}
}

func benchmarkPlainJobs(b *testing.B, batch int) {
	store, err := Open(b.Context(), pgtest.Database(b, migrations.Scheduler), Config{Lease: time.Minute, MaxLost: 3})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	if _, err := store.Beat(b.Context(), []jobevent.Heartbeat{{
		WorkerID: "w1", Slots: 1000, Partitions: map[string][]int32{"default": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
	}}); err != nil {
		b.Fatal(err)
	}
	if _, err := store.pool.Exec(b.Context(), "UPDATE workers SET seen_at = now() + interval '1 h'"); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for n := 0; n < b.N; n += batch {
		jobs := newJobs(batch)
		said, err := store.Ingest(b.Context(), jobs)
		if err != nil || len(said.Runs) != batch {
			b.Fatal(len(said.Runs), err)
		}
		if _, err := said.Events("ingest"); err != nil {
			b.Fatal(err)
		}
		outcomes := make([]Outcome, len(jobs))
		for i, job := range jobs {
			outcomes[i] = completed(job, 1)
		}
		said, err = store.Settle(b.Context(), outcomes)
		if err != nil || len(said.Jobs) != batch {
			b.Fatal(len(said.Jobs), err)
		}
		if _, err := said.Events("outcome"); err != nil {
			b.Fatal(err)
		}
	}
}
