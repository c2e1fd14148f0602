package kill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/local/suites/kill/witness"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/outboxdb"
)

// shop is a user's database with an outbox and a table of its own, whose rows are committed with the jobs'.
type shop struct {
	*localpostgres.Server
}

func openShop(t *testing.T) *shop {
	t.Helper()
	server, err := localpostgres.Start(t.Context(), localpostgres.Config{Dir: filepath.Join(t.TempDir(), "shop")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	must(t, outboxdb.Install(t.Context(), server.URL(), outboxdb.Roles{}))
	_, err = texts(t.Context(), server.URL(), "create table orders (number int, key text, job_id uuid)")
	must(t, err)
	return &shop{server}
}

// sell writes orders in transactions until ctx ends, the jobs of each writer with a key of its own or none. Every
// third transaction is rolled back, and some are open for a while. After an error it is unknown what was committed.
func (s *shop) sell(ctx context.Context, writer int, options string) (failures int) {
	for number := 0; pause(ctx, 20*time.Millisecond); {
		conn, err := pgx.Connect(ctx, s.URL())
		if err != nil {
			failures++
			continue
		}
		for err == nil && ctx.Err() == nil {
			number++
			err = s.order(ctx, conn, number, fmt.Sprintf("shop-%d", writer), options)
		}
		failures++
		_ = conn.Close(context.WithoutCancel(ctx))
	}
	return failures
}

var errRollBack = errors.New("roll back")

func (s *shop) order(ctx context.Context, conn *pgx.Conn, number int, key, options string) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into orders (number, key, job_id)
			select $1::int, $2::text, jobweaver.enqueue('WITNESS', jsonb_build_object('key', $2::text || '/' || $1::int), $3)`,
			number, key, options)
		if err == nil && number%3 == 0 {
			err = errRollBack
		}
		pause(ctx, rand.N(30*time.Millisecond))
		return err
	})
	if errors.Is(err, errRollBack) {
		return nil
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
	for writer, options := range []string{`{}`, `{}`, `{"orderingKey": "shop-2"}`, `{"orderingKey": "shop-3"}`} {
		writers.Go(func() {
			if failures := s.sell(selling, writer, options); failures < 2 {
				t.Errorf("writer %d met the death of its database %d times", writer, failures)
			}
		})
	}
	c := &chaos{fixture: h, rnd: rnd}
	frozen := h.named("relay-3")
	writers.Go(func() { c.freezes(selling, frozen) }) // 26 s; the server gives the rows of its transaction back after 20 s
	c.run(selling, append(h.targetsNamed("relay-1", "relay-2", "gateway"),
		target{name: "shop", kill: s.Kill, restart: s.Restart}))
	writers.Wait()

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
	for _, key := range []string{"shop-2", "shop-3"} {
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
