package statstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
)

// insert adds jobs of an owner and a fairness key; without a key they have the owner's.
func (f *fixture) insert(t testing.TB, queue, owner, key, status string, n int) {
	t.Helper()
	version, snapshot := 1, "'{}'"
	if status == "" {
		status, version, snapshot = "PENDING", 0, "null"
	}
	f.Exec(t, `insert into jobs (job_id, trace_id, owner_id, fairness_key, job_type, queue, payload, spec,
		tags, status, version, snapshot)
		select uuidv7(), gen_random_uuid(), $1, nullif($2, ''), 'X', $3, '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', '{}', $4, $5, `+snapshot+` from generate_series(1, $6)`,
		owner, key, queue, status, version, n)
}

func TestKeysCountsTheJobsThatCompeteForTheWorkersOfAQueue(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.insert(t, "default", "acme", "", "PENDING", 3)
	f.insert(t, "default", "acme", "", "", 2) // without a status yet
	f.insert(t, "default", "acme", "vip", "PENDING", 1)
	f.insert(t, "default", "", "acme", "PENDING", 1)
	f.insert(t, "default", "shop", "", "QUEUED", 2)
	f.insert(t, "default", "shop", "", "RUNNING", 1)
	f.insert(t, "default", "", "", "PENDING", 1)
	f.insert(t, "mail", "acme", "", "PENDING", 7)
	for _, status := range []string{"SCHEDULED", "RETRYING", "WAITING", "COMPLETED", "FAILED", "CANCELLED"} {
		f.insert(t, "default", "acme", "idle", status, 1)
	}
	for _, c := range []struct {
		owner apidb.Owner
		queue string
		want  []statstore.KeyCount
	}{
		{apidb.Everyone, "default", []statstore.KeyCount{{"acme", 6, 0}, {"", 1, 0}, {"vip", 1, 0}, {"shop", 0, 3}}},
		{apidb.OwnerOf("acme"), "default", []statstore.KeyCount{{"acme", 5, 0}, {"vip", 1, 0}}},
		{apidb.OwnerOf("shop"), "default", []statstore.KeyCount{{"shop", 0, 3}}},
		{apidb.Everyone, "mail", []statstore.KeyCount{{"acme", 7, 0}}},
		{apidb.OwnerOf("shop"), "mail", nil},
	} {
		got, err := f.Stats.Keys(t.Context(), c.owner, c.queue)
		if err != nil || !got.Complete || time.Since(got.At) > time.Minute || !slices.Equal(got.Keys, c.want) {
			t.Errorf("%v of %s: %+v, %v; want %v", c.owner, c.queue, got, err, c.want)
		}
	}
}

// BenchmarkKeys measures counting 100,000 waiting jobs of 10,000 keys:
//
//	go test ./shared/apidb/statstore -run '^$' -bench Keys
func BenchmarkKeys(b *testing.B) {
	f := &fixture{apidbtest.New(b)}
	for tenth := range 10 {
		f.Exec(b, `insert into jobs (job_id, trace_id, owner_id, fairness_key, job_type, queue, payload, spec,
			tags, status) select uuidv7(), gen_random_uuid(), '', 'customer-' || n, 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', '{}', 'PENDING'
			from generate_series(1, 10000) as n`)
		f.insert(b, "default", "", fmt.Sprint(tenth), "RUNNING", 10)
	}
	f.Exec(b, "update jobs set version = 1, snapshot = '{}' where version = 0")
	began := time.Now()
	counts, err := f.Stats.Keys(b.Context(), apidb.Everyone, "default")
	if err != nil || len(counts.Keys) != 10_010 || !counts.Complete {
		b.Fatalf("%d keys, %v", len(counts.Keys), err)
	}
	b.Logf("counting takes %s", time.Since(began))
	for b.Loop() {
		if _, err := f.Stats.Keys(b.Context(), apidb.Everyone, "default"); err != nil {
			b.Fatal(err)
		}
	}
}
