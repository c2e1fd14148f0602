package pgpool_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// schemas returns pools of two schemas of one database, and one of its schema public.
func schemas(t *testing.T) (url string, one, other, public *pgxpool.Pool) {
	t.Helper()
	url = pgtest.Database(t, migrations.Worker)
	public = open(t, url)
	for _, name := range []string{"a_jobweaver_api", "b_jobweaver_api"} {
		if _, err := public.Exec(t.Context(), "CREATE SCHEMA "+name); err != nil {
			t.Fatal(err)
		}
	}
	return url, open(t, url+"&search_path=a_jobweaver_api"), open(t, url+"&search_path=b_jobweaver_api"), public
}

const notify = "SELECT pg_notify(coalesce(nullif(current_schema(), 'public'), 'jobweaver') || '_due', '')"

func TestANotificationReachesItsSchemaAndNoOther(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(testwait.Within(t, time.Minute))
	defer cancel()
	_, one, other, public := schemas(t)
	for listens, others := range map[*pgxpool.Pool][]*pgxpool.Pool{one: {other, public}, public: {one, other}} {
		woken := make(chan struct{}, 10)
		go func() { _ = pgpool.Listen(ctx, listens, "jobweaver_due", func() { woken <- struct{}{} }) }()
		<-woken // it listens now
		for _, pool := range append(others, listens) {
			if _, err := pool.Exec(ctx, notify); err != nil {
				t.Fatal(err)
			}
		}
		<-woken // notifications come in the order of their commits
		if n := len(woken); n != 0 {
			t.Errorf("the schema %q is woken %d times more", pgpool.SchemaOf(listens), n)
		}
	}
}

// An outbox is in a database of its user, who may have it in any schema.
func TestAUsersDatabaseHasTheChannelThatIsNamed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(testwait.Within(t, time.Minute))
	defer cancel()
	url, _, _, public := schemas(t)
	pool, err := pgpool.Lazy(ctx, url+"&search_path=a_jobweaver_api", pgpool.UsersDatabase())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	woken := make(chan struct{}, 10)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = pgpool.Listen(ctx, pool, "jobweaver_due", func() { woken <- struct{}{} })
	}()
	<-woken
	if _, err := public.Exec(ctx, notify); err != nil {
		t.Fatal(err)
	}
	<-woken
	cancel()
	<-ended
}

func TestASchemaHasTheNameAndTheSizeOfItsOwn(t *testing.T) {
	t.Parallel()
	_, one, _, public := schemas(t)
	if _, err := one.Exec(t.Context(), "CREATE TABLE jobs AS SELECT n, repeat('x', 100) FROM generate_series(1, 10000) AS n"); err != nil {
		t.Fatal(err)
	}
	for _, pool := range []*pgxpool.Pool{one, public} {
		if err := pgpool.Writable(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	whole, own := pgpool.Figures(public), pgpool.Figures(one)
	if own.Database != "a_jobweaver_api" || own.Bytes < 1e6 || own.Bytes > whole.Bytes || whole.Database == own.Database {
		t.Errorf("the schema is %+v, its database %+v", own, whole)
	}
	var name string
	if err := one.QueryRow(t.Context(), "SHOW application_name").Scan(&name); err != nil || name != "jobweaver@a_jobweaver_api" {
		t.Errorf("its sessions are %q, %v", name, err)
	}
	if there, err := pgpool.HasSchema(t.Context(), one, "jobs"); err != nil || !there {
		t.Errorf("its table is there: %t, %v", there, err)
	}
	if there, err := pgpool.HasSchema(t.Context(), one, "execution_attempts"); err != nil || there {
		t.Errorf("a table of public is there: %t, %v", there, err)
	}
}
