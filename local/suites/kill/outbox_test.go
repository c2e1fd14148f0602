package kill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/local/suites/kill/witness"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/outboxdb"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// shop is a user's database with an outbox and a table of its own, whose rows are committed with the jobs'.
type shop struct {
	*localpostgres.Server
}

func openShop(t *testing.T) *shop {
	t.Helper()
	server, err := localpostgres.Start(t.Context(), localpostgres.Config{
		Dir: filepath.Join(t.TempDir(), "shop"), Settings: map[string]string{"max_prepared_transactions": "10"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	must(t, outboxdb.Install(t.Context(), server.URL(), outboxdb.Roles{}))
	_, err = texts(t.Context(), server.URL(), "create table orders (number int, key text, job_id uuid)")
	must(t, err)
	return &shop{server}
}

// A seller writes orders in transactions, each with a job. Its jobs have an ordering key of its own, or none.
type seller struct {
	*shop

	writer   int
	options  string
	prepares bool // commits in two phases
	number   int  // of the last order
}

func (s *seller) key() string { return fmt.Sprintf("shop-%d", s.writer) }

// sell writes orders until ctx ends. After an error it is unknown what was committed.
func (s *seller) sell(ctx context.Context) (failures int) {
	for retry.Pause(ctx, 20*time.Millisecond) {
		conn, err := pgx.Connect(ctx, s.URL())
		if err != nil {
			failures++
			continue
		}
		if s.prepares {
			err = s.resolve(ctx, conn)
		}
		for err == nil && ctx.Err() == nil {
			s.number++
			err = s.order(ctx, conn)
		}
		failures++
		_ = conn.Close(context.WithoutCancel(ctx))
	}
	return failures
}

var errRollBack = errors.New("roll back")

// order writes an order. Every third transaction is rolled back, every seventh loses its connection, and some are open
// for a while. Before each order another one is rolled back to a savepoint.
func (s *seller) order(ctx context.Context, conn *pgx.Conn) error {
	write := func(tx pgx.Tx, number int) error {
		_, err := tx.Exec(ctx, `insert into orders (number, key, job_id)
			select $1::int, $2::text, jobweaver.enqueue('WITNESS', jsonb_build_object('key', $2::text || '/' || $1::int), $3)`,
			number, s.key(), s.options)
		return err
	}
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			return errors.Join(write(tx, -s.number), errRollBack)
		})
		if errors.Is(err, errRollBack) {
			err = write(tx, s.number)
		}
		switch {
		case err != nil:
		case s.number%7 == 0:
			_, err = tx.Exec(ctx, "select pg_terminate_backend(pg_backend_pid())")
		case s.number%3 == 0:
			err = errRollBack
		case s.prepares:
			_, err = tx.Exec(ctx, fmt.Sprintf("prepare transaction '%s/%d'", s.key(), s.number))
		}
		retry.Pause(ctx, rand.N(30*time.Millisecond))
		return err
	})
	if errors.Is(err, errRollBack) {
		return nil
	}
	if s.prepares && err == nil {
		return s.resolve(ctx, conn)
	}
	return err
}

// resolve ends what an earlier connection has prepared: every fifth order is rolled back.
func (s *seller) resolve(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "set session_replication_role = replica"); err != nil { // runs no trigger: a
		return err // transaction with a notification cannot be prepared
	}
	rows, err := conn.Query(ctx, "select gid from pg_prepared_xacts where gid like $1 || '/%'", s.key())
	if err != nil {
		return err
	}
	prepared, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, gid := range prepared {
		end := "commit"
		if strings.HasSuffix(gid, "5") {
			end = "rollback"
		}
		if err == nil {
			_, err = conn.Exec(ctx, fmt.Sprintf("%s prepared '%s'", end, gid))
		}
	}
	return err
}

// TestEachCommittedRowOfAnOutboxIsOneJobWhateverIsKilled kills relays, the gateway and the user's database, and
// freezes a relay for longer than its transaction may live.
func TestEachCommittedRowOfAnOutboxIsOneJobWhateverIsKilled(t *testing.T) {
	d := duration(t)
	t.Parallel()
	rnd := newRand(t)
	s := openShop(t)
	h := build(t, plan{workers: 2, relays: 3, relayed: s.URL()})
	selling, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	var writers sync.WaitGroup
	var sellers []*seller
	for writer, options := range []string{`{}`, `{}`, `{"orderingKey": "shop-2"}`, `{"orderingKey": "shop-3"}`, `{"orderingKey": "shop-4"}`} {
		one := &seller{shop: s, writer: writer, options: options, prepares: writer%2 == 0 && writer > 0}
		sellers = append(sellers, one)
		writers.Go(func() {
			if failures := one.sell(selling); failures < 2 {
				t.Errorf("writer %d lost its connection %d times", writer, failures)
			}
		})
	}
	c := &chaos{fixture: h, rnd: rnd}
	frozen := h.named("relay-3")
	writers.Go(func() { c.freezes(selling, frozen) }) // 26 s; the server gives the rows of its transaction back after 20 s
	c.run(selling, append(h.targetsNamed("relay-1", "relay-2", "gateway"),
		target{name: "shop", kill: s.Kill, restart: s.Restart}))
	writers.Wait()
	for _, one := range sellers { // a seller that was killed leaves what it has prepared
		conn, err := pgx.Connect(t.Context(), s.URL())
		must(t, err)
		must(t, one.resolve(t.Context(), conn))
		must(t, conn.Close(t.Context()))
	}

	must(t, within(t.Context(), drainWithin, func(ctx context.Context) error {
		waiting, err := texts(ctx, s.URL(), "select id::text from jobweaver.outbox")
		if err == nil && len(waiting) > 0 {
			err = fmt.Errorf("%d rows wait", len(waiting))
		}
		return err
	}))
	must(t, h.drain(t.Context(), time.Time{}, drainWithin))
	h.checkShop(t, s)
	h.stopAll()
}

func (h *fixture) named(name string) *process {
	i := slices.IndexFunc(h.processes, func(p *process) bool { return p.name == name })
	return h.processes[i]
}

// checkShop compares the committed rows with the existing jobs, and with what ran.
func (h *fixture) checkShop(t *testing.T, s *shop) {
	t.Helper()
	sold, err := texts(t.Context(), s.URL(), "select job_id::text from orders order by 1")
	must(t, err)
	jobs, err := texts(t.Context(), h.urls.API, "select job_id::text from jobs order by 1")
	must(t, err)
	if len(sold) < 100 || !slices.Equal(sold, jobs) {
		t.Errorf("%d orders were committed, and there are %d jobs", len(sold), len(jobs))
	}
	rejected, err := texts(t.Context(), s.URL(), "select id || ': ' || error from jobweaver.outbox_rejected")
	must(t, err)
	if len(rejected) > 0 {
		t.Errorf("%d rows were rejected: %v", len(rejected), first(rejected, 3))
	}
	lines, err := witness.Read(h.witnessFile())
	must(t, err)
	starts := map[string]int{}
	for _, line := range lines {
		if line.What == witness.Start {
			starts[line.Job.String()]++
		}
	}
	for _, id := range sold {
		job, err := h.api.Get(t.Context(), id, 0)
		must(t, err)
		if job.Status != completed || starts[id] != 1 { // no worker is killed here
			t.Errorf("job %s is %s after %d starts", id, job.Status, starts[id])
		}
	}
	h.checkShopsOrder(t, s)
	t.Logf("%d orders, %d starts", len(sold), len(starts))
}

// checkShopsOrder: a writer's transactions follow each other, so jobs of its key run in the order of its numbers.
func (h *fixture) checkShopsOrder(t *testing.T, s *shop) {
	t.Helper()
	for _, key := range []string{"shop-2", "shop-3", "shop-4"} {
		ids, err := texts(t.Context(), s.URL(), "select job_id::text from orders where key = '"+key+"' order by number")
		must(t, err)
		var before *client.Job
		for _, id := range ids {
			job, err := h.api.Get(t.Context(), id, 0)
			must(t, err)
			if before != nil && job.StartedAt.Before(*before.FinishedAt) {
				t.Errorf("of %s job %s began at %s, before the end of %s at %s", key, id, job.StartedAt, before.JobID, before.FinishedAt)
			}
			before = job
		}
	}
}
