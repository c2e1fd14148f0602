package retention

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const day = 24 * time.Hour

// newFunction returns a function whose database has this many jobs that completed ten days ago, apart and in pairs.
func newFunction(t *testing.T, jobs, pairs int) *Function {
	t.Helper()
	url := pgtest.Database(t, migrations.Scheduler)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), `INSERT INTO jobs (job_id, trace_id, job_type, queue, payload, spec, status, attempt, rank, history, finished_at, created_at)
		SELECT uuidv7(interval '-10 d'), uuidv7(), 'A', 'default', '1', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', 'COMPLETED', 1, now(), '{"to": "COMPLETED"}',
			now() - interval '10 d', now() - interval '10 d'
		FROM generate_series(1, $1::int)`, jobs); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `INSERT INTO ended_cohorts (block_id, places, version, queue, job_type, spec, fairness_key,
			created_at, ended_at, history, trace_ids, payloads, started_at, finished_at)
		SELECT block_of(uuidv7(interval '-10 d')), 5, 1, 'default', 'A', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', '', at, at,
			'{"to": "QUEUED"}', ARRAY[uuidv7(), uuidv7()], '{1,2}', ARRAY[at, at], ARRAY[at, NULL]
		FROM generate_series(1, $1::int), LATERAL (SELECT now() - interval '10 d') AS its (at)`, pairs); err != nil {
		t.Fatal(err)
	}
	store, err := schedulerdb.Open(t.Context(), pgtest.As(url, Name), schedulerdb.Config{Lease: time.Minute, MaxLost: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	f, err := New(schedulerdb.Retention{Completed: 7 * day, Failed: 7 * day, Cancelled: 7 * day, Forget: 8 * day}, store)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAWalkGoesOnWhileThereIsMoreAndThenRests(t *testing.T) {
	t.Parallel()
	f := newFunction(t, 2*page+500, 0)
	deleted := map[string]bool{}
	for i, want := range []struct {
		events int
		next   time.Duration
	}{{page, 0}, {page, 0}, {500, rest}} {
		pause, began := f.pause, time.Now()
		items, next, err := f.Tick(t.Context())
		if err != nil || len(items) != want.events || next != want.next {
			t.Fatalf("tick %d returned %d events, next in %s, %v", i, len(items), next, err)
		}
		if took := time.Since(began); took < pause || f.pause <= 0 && i < 2 {
			t.Errorf("tick %d took %s, after a pause of %s", i, took, pause)
		}
		for _, e := range items {
			if version, err := jobevent.DeletedVersion(e); err != nil || version != 2 || deleted[e.Subject()] {
				t.Fatalf("returned %s, %v", e, err)
			}
			deleted[e.Subject()] = true
		}
	}
	if items, next, err := f.Tick(t.Context()); err != nil || len(items) > 0 || next <= 0 || next > rest {
		t.Errorf("between two walks it returned %d events, next in %s, %v", len(items), next, err)
	}
	f.begins = time.Time{}
	if items, next, err := f.Tick(t.Context()); err != nil || len(items) > 0 || next != 0 {
		t.Errorf("the next walk returned %d events, next in %s, %v", len(items), next, err)
	}
}

func TestJobsThatCompletedTogetherAreDeleted(t *testing.T) {
	t.Parallel()
	f := newFunction(t, 1, 100)
	deleted := map[string]bool{}
	for next := time.Duration(0); next == 0; {
		items, after, err := f.Tick(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range items {
			deleted[e.Subject()] = true
		}
		next = after
	}
	if len(deleted) != 201 {
		t.Errorf("%d were deleted", len(deleted))
	}
}

func TestWhoStopsDoesNotWaitForThePause(t *testing.T) {
	t.Parallel()
	f := newFunction(t, 1, 0)
	f.pause = time.Hour
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, _, err := f.Tick(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestASettingThatCannotBeStopsTheStart(t *testing.T) {
	t.Parallel()
	if _, err := New(schedulerdb.Retention{Forget: jobevent.RecordsGone - 1}, nil); err == nil || !strings.HasPrefix(err.Error(), "FORGET_AFTER: ") {
		t.Error(err)
	}
}

// The host compares this age with the retention of the brokers.
func TestRecordsMayNotOutliveWhatIsLeftOfTheirJob(t *testing.T) {
	t.Parallel()
	f, err := New(schedulerdb.Retention{Forget: 10 * day}, nil)
	if err != nil {
		t.Fatal(err)
	}
	fence := f.Host().Fence
	if fence.Setting != "FORGET_AFTER" || fence.Age != 10*day || !slices.Equal(fence.Topics, []string{jobevent.TopicCreated}) {
		t.Errorf("compares %+v", fence)
	}
}
