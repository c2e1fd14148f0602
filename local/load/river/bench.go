package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const database = "river_bench"

// bench is a River client that works jobs, on a database of its own.
type bench struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	starts chan start
	pad    string // of each job's arguments
}

func open(
	ctx context.Context, server string, connections, slots int, handler time.Duration,
) (_ *bench, err error) {
	address, err := create(ctx, server)
	if err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("read address: %w", err)
	}
	if connections > 0 {
		cfg.MaxConns = int32(connections)
	}
	b := &bench{starts: make(chan start, 1<<16)}
	if b.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	if err := b.begin(ctx, slots, handler); err != nil {
		b.pool.Close()
		return nil, err
	}
	return b, nil
}

// create makes the database anew and refuses a server that would make commits cheap.
func create(ctx context.Context, server string) (address string, err error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return "", errors.New("DATABASE_URL: is no postgres:// address")
	}
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		var value string
		if err := conn.QueryRow(ctx, "SHOW "+setting).Scan(&value); err != nil {
			return "", fmt.Errorf("show %s: %w", setting, err)
		}
		if value != "on" {
			return "", fmt.Errorf("the server has %s %s", setting, value)
		}
	}
	for _, sql := range []string{
		"DROP DATABASE IF EXISTS " + database + " WITH (FORCE)", "CREATE DATABASE " + database,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", fmt.Errorf("make database: %w", err)
		}
	}
	u.Path = "/" + database
	return u.String(), nil
}

// begin migrates and starts the client with the settings of River's own bench, but for the workers.
func (b *bench) begin(ctx context.Context, slots int, handler time.Duration) error {
	driver := riverpgxv5.New(b.pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &noop{sleeps: handler})
	river.AddWorker(workers, &stamp{starts: b.starts})
	b.client, err = river.NewClient(driver, &river.Config{
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: slots}},
		Workers:           workers,
		Logger:            slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if err := b.client.Start(ctx); err != nil {
		return fmt.Errorf("start client: %w", err)
	}
	return nil
}

func (b *bench) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := b.client.Stop(ctx); err != nil {
		slog.Warn("client does not stop", "error", err)
	}
	b.pool.Close()
}

type noopArgs struct {
	Num int    `json:"num"`
	Pad string `json:"pad,omitempty"`
}

// Kind is the name of the job type.
func (noopArgs) Kind() string { return "noop" }

type noop struct {
	river.WorkerDefaults[noopArgs]
	sleeps time.Duration
}

// Work does nothing but sleep.
func (w *noop) Work(context.Context, *river.Job[noopArgs]) error {
	time.Sleep(w.sleeps)
	return nil
}

// stampArgs is a job whose start is recorded.
type stampArgs struct {
	Num int    `json:"num"`
	Pad string `json:"pad,omitempty"`
}

// Kind is the name of the job type.
func (stampArgs) Kind() string { return "stamp" }

type start struct {
	num int
	at  time.Time
}

type stamp struct {
	river.WorkerDefaults[stampArgs]
	starts chan<- start
}

// Work notes the instant.
func (w *stamp) Work(_ context.Context, job *river.Job[stampArgs]) error {
	w.starts <- start{job.Args.Num, time.Now()}
	return nil
}
