package outboxdb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/outboxdb"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

const keyed = `{"orderingKey": "k"}`

func TestRowsAreTakenInTheirOrderAndOnce(t *testing.T) {
	t.Parallel()
	h := open(t, outboxdb.Roles{})
	for _, options := range []string{`{}`, keyed} {
		want := []uuid.UUID{h.enqueue(options), h.enqueue(options), h.enqueue(options)}
		if got := h.take(h.outbox, options == keyed); !slices.Equal(got, want) {
			t.Errorf("%s: took %v, want %v", options, got, want)
		}
		if got := h.take(h.outbox, options == keyed); got != nil {
			t.Errorf("%s: took %v again", options, got)
		}
	}
}

func TestALookFindsRowsOfItsKindFromAPositionOn(t *testing.T) {
	t.Parallel()
	h := open(t, outboxdb.Roles{})
	look := func(ordered bool, from int64) bool {
		there, err := h.outbox.HasRows(t.Context(), ordered, from)
		if err != nil {
			t.Error(err)
		}
		return there
	}
	if look(false, 0) || look(true, 0) {
		t.Error("an empty outbox has rows")
	}
	h.enqueue(keyed)
	if look(false, 0) || !look(true, 0) || look(true, 1_000) {
		t.Error("a row with a key is not found as such, or behind its position")
	}
	h.enqueue(`{}`)
	if !look(false, 0) {
		t.Error("a row without a key is not found")
	}
	h.exec("drop schema jobweaver cascade")
	if _, err := h.outbox.HasRows(t.Context(), false, 0); !errors.Is(err, outboxdb.ErrNotInstalled) {
		t.Errorf("without an outbox: %v", err)
	}
}

func TestRelaysShareRowsWithoutAKeyOnly(t *testing.T) {
	t.Parallel()
	h := open(t, outboxdb.Roles{})
	other := h.open(h.url)
	for range 3 {
		h.enqueue(`{}`)
		h.enqueue(keyed)
	}
	for _, ordered := range []bool{false, true} {
		taken, err := h.outbox.Take(t.Context(), ordered, 0, 2, func(ctx context.Context, rows []outboxdb.Row) (v outboxdb.Verdict, err error) {
			want := 1 // the first two are locked
			if ordered {
				want = 0 // a later row must not overtake them
			}
			if got := h.take(other, ordered); len(got) != want {
				t.Errorf("ordered %t: another relay took %v, want %d", ordered, got, want)
			}
			return accepting(func([]outboxdb.Row) {})(ctx, rows)
		})
		if err != nil || taken.Accepted != 2 {
			t.Errorf("ordered %t: took %+v: %v", ordered, taken, err)
		}
	}
	if ids := h.waiting(); len(ids) != 1 {
		t.Errorf("%d rows are left, want the last with a key", len(ids))
	}
}

func TestWhatIsNotAnsweredStays(t *testing.T) {
	t.Parallel()
	h := open(t, outboxdb.Roles{})
	accepted, rejected, open := h.enqueue(`{}`), h.enqueue(`{"priority": 99}`), h.enqueue(`{}`)
	away := errors.New("the gateway is away")
	taken, err := h.outbox.Take(t.Context(), false, 0, 10, func(_ context.Context, rows []outboxdb.Row) (outboxdb.Verdict, error) {
		return outboxdb.Verdict{
			Accepted: []int64{rows[0].Position},
			Rejected: map[int64]outboxdb.Rejection{
				rows[1].Position: {Status: 400, Code: "API.X", Message: "bad \x00\xff" + strings.Repeat("x", 5000)},
			},
		}, away
	})
	if !errors.Is(err, away) || taken.Accepted != 1 || taken.Rejected != 1 || taken.Rows != 3 {
		t.Errorf("took %+v: %v", taken, err)
	}
	if ids := h.waiting(); len(ids) != 1 || ids[0] != open {
		t.Errorf("waiting %v, want %s", ids, open)
	}
	list, err := outboxdb.List(t.Context(), h.url, false, 10)
	if err != nil || len(list) != 2 || list[0].JobID != rejected || list[1].JobID != open {
		t.Fatalf("listed %v: %v", list, err)
	}
	if e := list[0]; e.RejectedAt == nil || *e.Status != 400 || *e.ErrorCode != "API.X" || !strings.HasPrefix(*e.Error, "bad \uFFFD\uFFFDxx") {
		t.Errorf("listed %+v", e)
	}
	figures, err := h.outbox.Figures(t.Context())
	if err != nil || figures.Waiting != 1 || figures.Rejected != 1 || figures.Oldest <= 0 {
		t.Errorf("%+v, %v", figures, err)
	}
	for range 2 { // the second time there is nothing to retry
		if _, err := outboxdb.Retry(t.Context(), h.url, []uuid.UUID{rejected, accepted}); err != nil {
			t.Fatal(err)
		}
	}
	if ids := h.waiting(); len(ids) != 2 || ids[1] != rejected {
		t.Errorf("waiting %v, want %s again", ids, rejected)
	}
	if list, err := outboxdb.List(t.Context(), h.url, true, 10); err != nil || len(list) != 0 {
		t.Errorf("rejected %v, %v", list, err)
	}
}

func TestAPositionThatComesAgainIsRejectedLikeAnyOther(t *testing.T) {
	t.Parallel()
	h := open(t, outboxdb.Roles{})
	var want []uuid.UUID
	for range 2 {
		want = append(want, h.enqueue(`{}`))
		_, err := h.outbox.Take(t.Context(), false, 0, 10, func(_ context.Context, rows []outboxdb.Row) (v outboxdb.Verdict, err error) {
			v.Reject(rows[0].Position, outboxdb.Rejection{Status: 400, Code: "API.X"})
			return v, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		h.exec("alter table jobweaver.outbox alter column position restart") // as in a replica that becomes the primary
	}
	if n, err := outboxdb.Retry(t.Context(), h.url, want); n != 2 || err != nil {
		t.Errorf("retried %d rows: %v", n, err)
	}
	if got := h.waiting(); len(got) != 2 {
		t.Errorf("waiting %v, want %v", got, want)
	}
}

func TestALostConnectionLeavesTheRows(t *testing.T) {
	t.Parallel()
	h := open(t, outboxdb.Roles{})
	want := h.enqueue(keyed)
	_, err := h.outbox.Take(t.Context(), true, 0, 10, func(ctx context.Context, rows []outboxdb.Row) (outboxdb.Verdict, error) {
		h.exec(`select pg_terminate_backend(pid, 10000) from pg_stat_activity
			where datname = current_database() and application_name = 'jobweaver-relay'`)
		return accepting(func([]outboxdb.Row) {})(ctx, rows)
	})
	if err == nil {
		t.Error("a commit over a connection that was closed succeeded")
	}
	if got := h.take(h.outbox, true); len(got) != 1 || got[0] != want {
		t.Errorf("took %v after that, want %s", got, want)
	}
}

func TestABatchIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	h := open(t, outboxdb.Roles{})
	h.exec(`insert into jobweaver.outbox (job_type, payload) select 'OWN', to_jsonb(repeat('x', 500000)) from generate_series(1, 20)`)
	if n := len(h.take(h.outbox, false)); n != outboxdb.MaxBytes/500_000 {
		t.Errorf("took %d rows of 500 KB", n)
	}
}

func TestADatabaseWithoutAnOutboxIsNamed(t *testing.T) {
	t.Parallel()
	h := &fixture{t: t, url: pgtest.Empty(t)}
	h.outbox = h.open(h.url)
	if _, err := h.outbox.Take(t.Context(), false, 0, 1, nil); !errors.Is(err, outboxdb.ErrNotInstalled) {
		t.Error(err)
	}
	if _, err := outboxdb.List(t.Context(), h.url, false, 1); !errors.Is(err, outboxdb.ErrNotInstalled) {
		t.Error(err)
	}
}

// A table that is empty most of the time has useless statistics: the plan must not depend on them.
func TestRowsAreReadAlongTheKey(t *testing.T) {
	t.Parallel()
	h := open(t, outboxdb.Roles{})
	h.exec("vacuum analyze jobweaver.outbox")
	h.exec(`insert into jobweaver.outbox (job_type, payload, options)
		select 'OWN', '1', case when n % 2 = 0 then '{"orderingKey": "k"}'::jsonb else '{}' end from generate_series(1, 10000) as n`)
	h.exec("set enable_seqscan = off; set enable_bitmapscan = off")
	for _, ordered := range []bool{false, true} {
		rows, err := h.owner.Query(t.Context(), fmt.Sprintf(`explain select position from jobweaver.outbox
			where ordered = %t and position >= 100 order by ordered, position limit 500 for update skip locked`, ordered))
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan := strings.Join(lines, "\n")
		if err != nil || !strings.Contains(plan, "using outbox_pkey") || strings.Contains(plan, "Sort") || strings.Contains(plan, "Filter") {
			t.Errorf("%v: %s", err, plan)
		}
	}
}

// While a transaction holds back vacuum, dead rows stay, and a relay begins behind them. When the transaction has
// ended, vacuum removes them.
func TestALongTransactionLeavesNoLastingBloat(t *testing.T) {
	t.Parallel()
	h := open(t, outboxdb.Roles{})
	long := h.connect(h.url)
	if _, err := long.Exec(t.Context(), "begin isolation level repeatable read; select 1"); err != nil {
		t.Fatal(err)
	}
	size := func() (bytes int64) {
		t.Helper()
		h.exec("vacuum jobweaver.outbox")
		const sql = "select pg_total_relation_size('jobweaver.outbox')"
		if err := h.owner.QueryRow(t.Context(), sql).Scan(&bytes); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	h.exec(`insert into jobweaver.outbox (job_type, payload) select 'OWN', to_jsonb(n) from generate_series(1, 20000) as n`)
	from, taken := int64(0), 0
	for {
		batch, err := h.outbox.Take(t.Context(), false, from, outboxdb.MaxRows, accepting(func([]outboxdb.Row) {}))
		if err != nil {
			t.Fatal(err)
		}
		if batch.Rows == 0 {
			break
		}
		from, taken = batch.Last+1, taken+batch.Accepted
	}
	if held := size(); taken != 20_000 || held < 1<<20 {
		t.Errorf("took %d rows; %d bytes while a transaction holds them back", taken, held)
	}
	if _, err := long.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	if left := size(); left > 1<<20 {
		t.Errorf("%d bytes are left of an empty outbox", left)
	}
}
