package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/proctree"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

// outboxRate is the rate of the latencies, in jobs a second.
const outboxRate = 100

// outbox compares jobs that a transaction enqueues with jobs of a POST, and measures a busy relay and an idle one.
func (b *bench) outbox(ctx context.Context) error {
	url, err := b.server.MakeOutbox(ctx)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return fmt.Errorf("open the outbox: %w", err)
	}
	defer pool.Close()
	return b.withSystem(ctx, b.server, nil, func(sys *system) (err error) {
		relay, err := rig.StartRelay(sys.dir, url, sys.URL)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, relay.Stop()) }()
		if err := b.warm(ctx, sys); err != nil {
			return err
		}
		m := &outboxRun{bench: b, sys: sys, pool: pool, relay: relay}
		m.result.Rate, m.result.Jobs = outboxRate, b.Settings.Jobs
		if err := errors.Join(m.latencies(ctx), m.throughput(ctx), m.idle(ctx)); err != nil {
			return err
		}
		b.results.Outbox = &m.result
		return nil
	})
}

type outboxRun struct {
	*bench
	sys    *system
	pool   *pgxpool.Pool
	relay  *rig.Child
	result figures.Outbox
}

// enqueue is a transaction as small as a POST.
func (m *outboxRun) enqueue(ctx context.Context) (id string, err error) {
	err = pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select jobweaver.enqueue($1, '{"num": 1}')::text`, NoopType).Scan(&id)
	})
	return id, err
}

// empty returns when the outbox is empty.
func (m *outboxRun) empty(ctx context.Context) error {
	for {
		var waiting bool
		err := m.pool.QueryRow(ctx, "select exists (select from jobweaver.outbox)").Scan(&waiting)
		if err != nil || !waiting {
			return err
		}
		if err := pass(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

func (m *outboxRun) latencies(ctx context.Context) error {
	post := apiload.Steady{Request: m.noop, Rate: outboxRate}
	commit := apiload.Steady{Rate: outboxRate, Submit: m.enqueue, Came: m.empty}
	for _, of := range []struct {
		load apiload.Steady
		into *figures.Distribution
		what string
	}{{post, &m.result.Post, "POST"}, {commit, &m.result.Commit, "commit"}} {
		for _, lasts := range []time.Duration{time.Second, m.LatencyFor} { // the first is not counted
			of.load.For = lasts
			l, err := m.sys.api.Latency(ctx, of.load)
			if err != nil {
				return err
			}
			*of.into = figures.Distribute(l.Start)
		}
		m.printf("%d/s  %s→start  %s", outboxRate, of.what, *of.into)
	}
	return nil
}

// throughput commits all jobs at once. The clock runs from then on.
func (m *outboxRun) throughput(ctx context.Context) error {
	const insert = `insert into jobweaver.outbox (job_type, payload)
		select $1, '{"num": 1}' from generate_series(1, $2::int)`
	if _, err := m.pool.Exec(ctx, insert, NoopType, m.result.Jobs); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	began, used := time.Now(), proctree.CPU(m.relay.Pid())
	if err := m.empty(ctx); err != nil {
		return err
	}
	jobs := float64(m.result.Jobs)
	m.result.TakenPerS = jobs / time.Since(began).Seconds()
	m.result.RelayCPU = float64((proctree.CPU(m.relay.Pid()) - used).Microseconds()) / jobs
	if err := m.sys.api.Drained(ctx); err != nil {
		return err
	}
	m.result.EndedPerS = jobs / time.Since(began).Seconds()
	m.printf("%d jobs of one commit: %.0f/s taken, %.0f/s ended", m.result.Jobs, m.result.TakenPerS, m.result.EndedPerS)
	return nil
}

func (m *outboxRun) idle(ctx context.Context) error {
	if err := pass(ctx, settling); err != nil {
		return err
	}
	used, from := proctree.CPU(m.relay.Pid()), time.Now()
	if err := pass(ctx, 3*idleFor); err != nil {
		return err
	}
	m.result.IdleCPU = (proctree.CPU(m.relay.Pid()) - used).Seconds() / time.Since(from).Seconds() * 100
	m.result.IdleMiB = float64(proctree.Memory(m.relay.Pid())) / mib
	m.printf("idle relay: %.2f %% of a core", m.result.IdleCPU)
	return nil
}
