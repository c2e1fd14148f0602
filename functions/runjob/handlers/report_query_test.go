package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/secret"
)

const queries = `
kinds:
  sql: |
    select 12.30::numeric as amount, 9007199254740993 as big, 0.1::float8 as f, 'NaN'::numeric as nan, true as yes,
      date '2026-11-22' as day, timestamp '2026-11-22 08:00:00.5' as local, timestamptz '2026-11-22 08:00+02' as at,
      timestamptz 'infinity' as never, null::text as nothing, '{"a": 1}'::jsonb as j, array['x', 'y'] as list
parameters:
  sql: |
    select @t as t, @i as i, @b as b, @n as n, @y as y, @d as d, @at as at, @u as u -- not @this or '@that'
  parameters: {t: text, i: integer, b: bigint, n: numeric, y: boolean, d: date, at: timestamptz, u: uuid}
many:
  sql: select i as id, 'customer ' || i as customer, i * 0.01 as amount, now() as at from generate_series(1, @n) i
  parameters: {n: integer}
slow:
  sql: select i, repeat('x', 200), pg_sleep(0.001) from generate_series(1, 1000000) i
late:
  sql: select pg_sleep(600)
writes:
  sql: insert into workers (worker_id) values ('x') returning worker_id
commits:
  sql: commit
fails:
  sql: select 1 / (i - 3) as x from generate_series(1, 10) i
unknown:
  sql: select * from no_such_table
owned:
  sql: select amount from (values ('acme', 1), ('other', 2), ('', 3)) of (owner, amount) where owner = @owner and amount < @most -- not '@owner'
  parameters: {most: integer}
`

// dated returns a reporter with queries and a database of its own.
func dated(t *testing.T) (*reporter, *pgxpool.Pool) {
	t.Helper()
	url := pgtest.Database(t, migrations.Worker)
	file := filepath.Join(t.TempDir(), "queries.yaml")
	if err := os.WriteFile(file, []byte(queries), 0o600); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return newReporter(t, handlers.ReportConfig{Queries: file, DatabaseURL: secret.Of(url)}), pool
}

func ask(query, parameters, more string) string {
	return fmt.Sprintf(`{"title": "T", "format": "csv", "query": %q, "parameters": %s%s}`, query, parameters, more)
}

func TestAReportOfANamedQuery(t *testing.T) {
	t.Parallel()
	r, _ := dated(t)
	for payload, want := range map[string]string{
		ask("kinds", `{}`, ""): "amount,big,f,nan,yes,day,local,at,never,nothing,j,list\n" +
			"12.30,9007199254740993,0.1,NaN,true,2026-11-22,2026-11-22T08:00:00.5,2026-11-22T06:00:00Z,infinity,,\"{\"\"a\"\": 1}\",\"{x,y}\"\n",
		ask("kinds", `{}`, `, "columns": [{"name": "at", "title": "At", "total": "max"}, {"name": "amount", "total": "sum"}]`): "At,amount\n" +
			"2026-11-22T06:00:00Z,12.30\n2026-11-22T06:00:00Z,12.30\n",
		ask("parameters", `{"t": "'; drop table x; --", "i": -7, "b": 9007199254740993, "n": "1.10", "y": false, "d": "2026-11-22",
			"at": "2026-11-22T08:00:00.25+01:00", "u": "0198d4f0-0000-7000-8000-000000000000"}`, ""): "t,i,b,n,y,d,at,u\n" +
			"'; drop table x; '--,-7,9007199254740993,1.10,false,2026-11-22,2026-11-22T07:00:00.25Z,0198d4f0-0000-7000-8000-000000000000\n",
		ask("parameters", `{"t": null, "i": null, "b": null, "n": null, "y": null, "d": null, "at": null, "u": null}`, ""): "t,i,b,n,y,d,at,u\n,,,,,,,\n",
	} {
		out, err := r.run(t.Context(), payload)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(r.text(out)); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestInvalidQueriesAreRefused(t *testing.T) {
	t.Parallel()
	r, _ := dated(t)
	good := map[string]string{
		"t": `"x"`, "i": `1`, "b": `1`, "n": `1`, "y": `true`, "d": `"2026-11-22"`, "at": `"2026-11-22T08:00:00Z"`,
		"u": `"0198d4f0-0000-7000-8000-000000000000"`,
	}
	but := func(name, value string) string {
		var fields []string
		for n, v := range good {
			if n != name {
				fields = append(fields, fmt.Sprintf("%q: %s", n, v))
			}
		}
		if value != "" {
			fields = append(fields, fmt.Sprintf("%q: %s", name, value))
		}
		return ask("parameters", "{"+strings.Join(fields, ", ")+"}", "")
	}
	for payload, c := range map[string]struct{ code, message string }{
		ask("nobody's", `{}`, ""): {"INVALID_PAYLOAD", "payload.query"},
		but("u", ""):              {"INVALID_PAYLOAD", "payload.parameters.u: is missing"},
		but("other", `1`):         {"INVALID_PAYLOAD", "payload.parameters.other"},
		but("t", `1`):             {"INVALID_PAYLOAD", "payload.parameters.t"},
		but("t", `"\u0000"`):      {"INVALID_PAYLOAD", "payload.parameters.t"},
		but("i", `2147483648`):    {"INVALID_PAYLOAD", "payload.parameters.i"},
		but("i", `1.0`):           {"INVALID_PAYLOAD", "payload.parameters.i"},
		but("b", `"1"`):           {"INVALID_PAYLOAD", "payload.parameters.b"},
		but("n", `"NaN"`):         {"INVALID_PAYLOAD", "payload.parameters.n"},
		but("y", `1`):             {"INVALID_PAYLOAD", "payload.parameters.y"},
		but("d", `"0000-01-01"`):  {"INVALID_PAYLOAD", "payload.parameters.d"},
		but("d", `"infinity"`):    {"INVALID_PAYLOAD", "payload.parameters.d"},
		but("at", `"now"`):        {"INVALID_PAYLOAD", "payload.parameters.at"},
		but("u", `"0198d4f0"`):    {"INVALID_PAYLOAD", "payload.parameters.u"},
		ask("fails", `{}`, ""):    {"REPORT_QUERY_FAILED", "division by zero"},
		ask("unknown", `{}`, ""):  {"REPORT_QUERY_FAILED", "no_such_table"},
		ask("writes", `{}`, ""):   {"REPORT_QUERY_FAILED", "read-only"},
		ask("commits", `{}`, ""):  {"REPORT_QUERY_FAILED", "no rows"},
		ask("kinds", `{}`, `, "columns": [{"name": "nil"}]`):                  {"INVALID_PAYLOAD", "payload.columns[0].name"},
		ask("kinds", `{}`, `, "columns": [{"name": "list", "total": "sum"}]`): {"INVALID_PAYLOAD", "not a number"},
	} {
		failure := r.failure(payload)
		if failure.Code != "WORKER."+c.code || !strings.Contains(failure.Message, c.message) || failure.Retryable {
			t.Errorf("%s: %+v", payload, failure)
		}
	}
	if left := r.files(); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestAnUnavailableDatabaseIsRetried(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "queries.json")
	if err := os.WriteFile(file, []byte(`{"one": {"sql": "select 1"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newReporter(t, handlers.ReportConfig{Queries: file, DatabaseURL: secret.Of("postgres://u:geheim@127.0.0.1:1/x")})
	failure := r.failure(ask("one", `{}`, ""))
	if failure.Code != "WORKER.REPORT_QUERY_FAILED" || !failure.Retryable || strings.Contains(failure.Message, "geheim") {
		t.Errorf("failed with %+v", failure)
	}
}

func TestACancelledReportEndsAtOnceAndLeavesNoFile(t *testing.T) {
	t.Parallel()
	r, pool := dated(t)
	why := errors.New("because")
	for _, format := range []string{"csv", "xlsx", "pdf", "html"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var at time.Time
		r.onProgress = func() {
			if at.IsZero() {
				at = time.Now()
				cancel(why)
			}
		}
		_, err := r.run(ctx, fmt.Sprintf(`{"title": "T", "format": %q, "query": "slow"}`, format))
		if !errors.Is(err, why) || time.Since(at) > 10*time.Second {
			t.Errorf("%s: %v, %s after the cancel", format, err, time.Since(at))
		}
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, why)
	defer cancel()
	if _, err := r.run(ctx, ask("late", `{}`, "")); !errors.Is(err, why) {
		t.Errorf("before the first row: %v", err)
	}
	if left := r.files(); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	for deadline := time.Now().Add(10 * time.Second); ; <-time.After(20 * time.Millisecond) {
		var running int
		err := pool.QueryRow(t.Context(), `select count(*) from pg_stat_activity
			where application_name = 'jobweaver-report' and datname = current_database() and state = 'active'`).Scan(&running)
		if err == nil && running == 0 {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d queries still run, %v", running, err)
		}
	}
}

func TestAQueryEndsWithItsAttempt(t *testing.T) {
	t.Parallel()
	r, _ := dated(t)
	r.timeout = 300 * time.Millisecond
	failure := r.failure(ask("late", `{}`, ""))
	if failure.Code != "WORKER.REPORT_QUERY_FAILED" || !failure.Retryable || !strings.Contains(failure.Message, "timeout") {
		t.Errorf("failed with %+v", failure)
	}
}

// All owners may run all queries. A query that compares with @owner shows each owner its own rows.
func TestAQueryHasTheOwnerOfItsJob(t *testing.T) {
	t.Parallel()
	r, _ := dated(t)
	for owner, want := range map[string]string{"acme": "amount\n1\n", "other": "amount\n2\n", "'' or true": "amount\n", "": "amount\n"} {
		r.owner = owner
		out, err := r.run(t.Context(), ask("owned", `{"most": 9}`, ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(r.text(out)); got != want {
			t.Errorf("%q reads %q", owner, got)
		}
	}
	r.owner = "other"
	failure := r.failure(ask("owned", `{"most": 9, "owner": "acme"}`, ""))
	if failure.Code != "WORKER.INVALID_PAYLOAD" || !strings.HasPrefix(failure.Message, "payload.parameters.owner: ") {
		t.Errorf("with an owner in its payload: %+v", failure)
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	if err := os.WriteFile(file, []byte("q: {sql: select @owner, parameters: {owner: text}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := handlers.NewReport(handlers.ReportConfig{Queries: file})
	if err == nil || !strings.HasPrefix(err.Error(), "REPORT_QUERIES: query q: parameter owner: ") {
		t.Errorf("with a declared owner: %v", err)
	}
}
