package outboxdb_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/shared/outboxdb"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestEnqueueKeepsAJobWithTheTransaction(t *testing.T) {
	t.Parallel()
	h := open(t, outboxdb.Roles{})
	h.exec("begin")
	h.enqueue(`{}`)
	h.exec("rollback")
	if ids := h.waiting(); len(ids) != 0 {
		t.Errorf("rolled back, and there are %v", ids)
	}
	h.exec("begin")
	before := time.Now().Add(-time.Millisecond)
	id := h.enqueue(`{"queue": "default"}`)
	h.exec("commit")
	if ids := h.waiting(); len(ids) != 1 || ids[0] != id {
		t.Errorf("committed %s, and there are %v", id, ids)
	}
	s, ns := id.Time().UnixTime()
	at := time.Unix(s, ns)
	if id.Version() != 7 || id.Variant() != uuid.RFC4122 || id[15]&1 != 0 || at.Before(before) || at.After(time.Now()) {
		t.Errorf("id %s of %s, enqueued after %s", id, at, before)
	}
	h.exec(`select jobweaver.enqueue('OWN', 'null'), jobweaver.enqueue('OWN', '1', null)`)
	if ids := h.waiting(); len(ids) != 3 {
		t.Errorf("%d rows", len(ids))
	}
}

func TestIDsDiffer(t *testing.T) {
	t.Parallel()
	h := open(t, outboxdb.Roles{})
	var different, even int
	err := h.owner.QueryRow(t.Context(), `select count(distinct id), count(*) filter (where id::text ~ '[02468ace]$')
		from (select jobweaver.new_id() as id from generate_series(1, 10000)) as made`).Scan(&different, &even)
	if err != nil || different != 10_000 || even != 10_000 {
		t.Errorf("of 10000 ids %d differ and %d have an even end: %v", different, even, err)
	}
}

func TestWhatCanBeNoJobIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	h := open(t, outboxdb.Roles{})
	for constraint, sql := range map[string]string{
		"job_type_is_a_name":                      `select jobweaver.enqueue('two words', '1')`,
		"options_are_members_of_a_job_request":    `select jobweaver.enqueue('OWN', '1', '{"idempotencyKey": "k"}')`,
		"a_job_has_at_most_512_kib":               `select jobweaver.enqueue('OWN', to_jsonb(repeat('x', 600000)))`,
		"id_is_a_uuid_of_version_7":               `insert into jobweaver.outbox (id, job_type, payload) values (gen_random_uuid(), 'OWN', '1')`,
		"options_are_members_of_a_job_request ":   `select jobweaver.enqueue('OWN', '1', '[]')`,
		"options_are_members_of_a_job_request  ":  `select jobweaver.enqueue('OWN', '1', '{"jobId": "x"}')`,
		"options_are_members_of_a_job_request   ": `select jobweaver.enqueue('OWN', '1', '{"priorty": 1}')`,
	} {
		_, err := h.owner.Exec(t.Context(), sql)
		if refused := new(pgconn.PgError); !errors.As(err, &refused) || refused.ConstraintName != strings.TrimSpace(constraint) {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func TestInstallRunsAgainWhileTheOutboxIsInUse(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := outboxdb.Install(t.Context(), url, outboxdb.Roles{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	h := &fixture{t: t, url: url}
	h.owner = h.connect(url)
	h.exec("begin")
	id := h.enqueue(`{}`) // a transaction that holds the table
	if err := outboxdb.Install(t.Context(), url, outboxdb.Roles{}); err != nil {
		t.Error(err)
	}
	h.exec("commit")
	if ids := h.waiting(); len(ids) != 1 || ids[0] != id {
		t.Errorf("there are %v", ids)
	}
}

func TestInstallLetsAnOldOutboxTakeNewOptions(t *testing.T) {
	t.Parallel()
	h := open(t, outboxdb.Roles{})
	const fair = `{"fairnessKey": "f", "unique": {"key": "u"}, "throttle": {"key": "t", "perMs": 1}, "singleton": {"key": "s"}}`
	h.enqueue(fair)
	h.exec(`truncate jobweaver.outbox; alter table jobweaver.outbox drop constraint options_are_members_of_a_job_request,
		add constraint options_are_members_of_a_job_request check (options - array['queue'] = '{}')`)
	if err := outboxdb.Install(t.Context(), h.url, outboxdb.Roles{}); err != nil {
		t.Fatal(err)
	}
	h.enqueue(fair)
	if _, err := h.owner.Exec(t.Context(), `select jobweaver.enqueue('OWN', '1', '{"priorty": 1}')`); err == nil {
		t.Error("it takes what is no member")
	}
}

func TestInstallRefusesASchemaOfAnotherRoleOrANewerOne(t *testing.T) {
	t.Parallel()
	other := role(t)
	h := &fixture{t: t, url: pgtest.Empty(t)}
	h.owner = h.connect(h.url)
	h.exec("create schema jobweaver authorization " + pgx.Identifier{other}.Sanitize())
	if err := outboxdb.Install(t.Context(), h.url, outboxdb.Roles{}); err == nil || !strings.Contains(err.Error(), other) {
		t.Errorf("with a schema of %s: %v", other, err)
	}
	if err := outboxdb.Install(t.Context(), h.as(other), outboxdb.Roles{}); err != nil {
		t.Errorf("as its owner, which is no superuser: %v", err)
	}
	h.exec("comment on schema jobweaver is 'The outbox of JobWeaver, version 999'")
	if err := outboxdb.Install(t.Context(), h.as(other), outboxdb.Roles{}); err == nil || !strings.Contains(err.Error(), "999") {
		t.Errorf("over a newer one: %v", err)
	}
}

func TestARoleThatMayOnlyInsertCanDoNothingElse(t *testing.T) {
	t.Parallel()
	app, relay := role(t), role(t)
	h := open(t, outboxdb.Roles{Enqueue: []string{app}, Relay: []string{relay}})
	conn := h.connect(h.as(app))
	for _, sql := range []string{
		`select jobweaver.enqueue('OWN', '1', '{"queue": "default"}')`,
		`insert into jobweaver.outbox (job_type, payload) select 'OWN', to_jsonb(n) from generate_series(1, 3) as n`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	for _, sql := range []string{
		`select * from jobweaver.outbox`, `delete from jobweaver.outbox`, `update jobweaver.outbox set payload = '1'`,
		`truncate jobweaver.outbox`, `select id from jobweaver.outbox for update`,
		`insert into jobweaver.outbox (job_type, payload, created_at) values ('OWN', '1', now())`,
		`insert into jobweaver.outbox (position, job_type, payload) overriding system value values (1, 'OWN', '1')`,
		`insert into jobweaver.outbox (job_type, payload) values ('OWN', '1') returning position`,
		`select * from jobweaver.outbox_rejected`, `create table jobweaver.mine ()`, `drop table jobweaver.outbox`,
		`create or replace function jobweaver.new_id() returns uuid language sql as 'select null::uuid'`,
		`alter table jobweaver.outbox disable trigger all`,
	} {
		_, err := conn.Exec(t.Context(), sql)
		if refused := new(pgconn.PgError); !errors.As(err, &refused) || refused.Code != "42501" {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if ids := h.take(h.open(h.as(relay)), false); len(ids) != 4 {
		t.Errorf("the relay took %v", ids)
	}
}

// A function in a schema that comes first in a caller's search_path must not run in place of PostgreSQL's own function.
func TestTheSearchPathOfTheCallerChangesNothing(t *testing.T) {
	t.Parallel()
	h := open(t, outboxdb.Roles{})
	h.exec(`create schema trap;
		create function trap.pg_notify(text, text) returns void language plpgsql as $$ begin raise 'trapped'; end $$;
		create function trap.pg_try_advisory_lock_shared(int, int) returns boolean language plpgsql as $$ begin raise 'trapped'; end $$;
		create function trap.lpad(text, int, text) returns text language plpgsql as $$ begin raise 'trapped'; end $$;
		create function trap.gen_random_uuid() returns uuid language plpgsql as $$ begin raise 'trapped'; end $$;
		set search_path = trap, pg_catalog`)
	h.enqueue(`{"queue": "default"}`)
}

// Commits with notifications wait for each other, so a commit sends no notification if no relay needs it.
func TestACommitWakesRelaysUnlessOneIsBusy(t *testing.T) {
	t.Parallel()
	h := open(t, outboxdb.Roles{})
	listener, relay := h.connect(h.url), h.connect(h.url)
	if _, err := listener.Exec(t.Context(), "listen jobweaver_outbox"); err != nil {
		t.Fatal(err)
	}
	woken := func(last string) (times int) { // counts the notifications up to the test's own
		t.Helper()
		h.exec("select pg_notify('jobweaver_outbox', $1)", last)
		for {
			n, err := listener.WaitForNotification(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n.Payload == last {
				return times
			}
			times++
		}
	}
	h.exec("begin")
	h.enqueue(`{}`)
	h.enqueue(`{}`)
	h.exec("commit")
	if n := woken("two rows"); n != 1 {
		t.Errorf("two rows of one transaction woke %d times", n)
	}
	h.exec("begin")
	h.enqueue(`{}`)
	h.exec("rollback")
	if n := woken("rolled back"); n != 0 {
		t.Errorf("a row that was rolled back woke %d times", n)
	}
	if _, err := relay.Exec(t.Context(), "begin; select pg_try_advisory_xact_lock(1785164650, 1)"); err != nil {
		t.Fatal(err)
	}
	h.enqueue(`{}`)
	if n := woken("busy"); n != 0 {
		t.Errorf("with a busy relay a row woke %d times", n)
	}
	if _, err := relay.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	h.enqueue(`{}`)
	if n := woken("free"); n != 1 {
		t.Errorf("after a busy relay a row woke %d times", n)
	}
}
