package batchstore_test

import (
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
)

// What a batch of 100,000 jobs costs, whose rows each had three statuses and were never vacuumed:
//
//	go test ./shared/apidb/batchstore -run '^$' -bench Large
func BenchmarkLarge(b *testing.B) {
	f := open(b)
	id, _ := f.create(b, apibody.Batch{Closed: true}, 0)
	f.Exec(b, `insert into jobs (job_id, trace_id, owner_id, job_type, queue, payload, spec, tags, status, batch_id)
		select uuidv7(), gen_random_uuid(), '', 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', '{}', 'PENDING', $1 from generate_series(1, 100000)`, id)
	for version, status := range []string{"QUEUED", "RUNNING", "COMPLETED"} {
		f.Exec(b, "update jobs set status = $1, version = $2, snapshot = '{}' where batch_id = $3", status, version+1, id)
	}
	f.Exec(b, "update jobs set status = 'RUNNING' where job_id = (select max(job_id::text)::uuid from jobs)")
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := f.Batches.Get(b.Context(), apidb.Everyone, id); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("sweep with a job left", func(b *testing.B) {
		for b.Loop() {
			f.sweep(b)
		}
	})
	f.Exec(b, "update jobs set status = 'COMPLETED' where status = 'RUNNING'")
	began := time.Now()
	f.sweep(b)
	b.Logf("the sweep that ends it takes %s", time.Since(began))
	if got := f.batch(b, id); got.Counts.Total() != 100_000 || got.FinishedAt == nil {
		b.Errorf("it is %+v", got)
	}
	empty := time.Now()
	f.sweep(b)
	b.Logf("a sweep with nothing to do takes %s", time.Since(empty))
}
