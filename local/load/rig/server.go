package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/migrations"
)

// riverDatabase is the database that local/load/river makes.
const riverDatabase = "river_bench"

// Databases are JobWeaver's three databases.
func Databases() []string {
	return []string{migrations.API.Database(), migrations.Scheduler.Database(), migrations.Worker.Database()}
}

// Server is the PostgreSQL that all contestants share.
type Server struct {
	server *localpostgres.Server
	pid    int
}

// StartServer starts a server in dir with the settings of make run, and refuses a server whose commits do not reach a
// disk.
func StartServer(ctx context.Context, dir string, settings map[string]string, progress func(string)) (*Server, error) {
	started, err := localpostgres.Start(ctx, localpostgres.Config{Dir: dir, Settings: settings, Progress: progress})
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	s := &Server{server: started}
	if s.pid, err = postmaster(dir); err == nil {
		err = s.Durable(ctx, "postgres")
	}
	if err != nil {
		return nil, errors.Join(err, started.Stop())
	}
	return s, nil
}

// postmaster returns the process id of the server that uses the data folder.
func postmaster(dir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		return 0, fmt.Errorf("find PostgreSQL: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strconv.Atoi(strings.TrimSpace(first))
}

// Pid returns the postmaster's process id.
func (s *Server) Pid() int { return s.pid }

// URL returns the address of the database "postgres".
func (s *Server) URL() string { return s.server.URL() }

// Stop ends the server.
func (s *Server) Stop() error { return s.server.Stop() }

// Connect opens a connection to inspect a database. The caller closes it.
func (s *Server) Connect(ctx context.Context, database string) (*pgx.Conn, error) {
	url, err := migrations.WithDatabase(s.URL(), database)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", database, err)
	}
	return conn, nil
}

// With runs use on a connection to a database.
func (s *Server) With(ctx context.Context, database string, use func(*pgx.Conn) error) error {
	conn, err := s.Connect(ctx, database)
	if err != nil {
		return err
	}
	return errors.Join(use(conn), conn.Close(ctx))
}

// Durable fails unless a commit in the database survives a crash: otherwise the figures would be worthless.
func (s *Server) Durable(ctx context.Context, database string) error {
	return s.With(ctx, database, func(conn *pgx.Conn) error {
		for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
			var value string
			if err := conn.QueryRow(ctx, "SHOW "+setting).Scan(&value); err != nil {
				return fmt.Errorf("show %s: %w", setting, err)
			}
			if value != "on" {
				return fmt.Errorf("database %s has %s %s", database, setting, value)
			}
		}
		return nil
	})
}

// Version returns the server's version.
func (s *Server) Version(ctx context.Context) (version string, err error) {
	err = s.With(ctx, "postgres", func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SHOW server_version").Scan(&version)
	})
	return version, err
}

// Flushes returns how often the server has flushed its log to the disk. A session reports its work at most once a
// second.
func (s *Server) Flushes(ctx context.Context) (n int64, err error) {
	err = s.With(ctx, "postgres", func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT coalesce(sum(fsyncs), 0)::bigint FROM pg_stat_io WHERE object = 'wal'").Scan(&n)
	})
	return n, err
}

// Settle writes out what earlier runs have left in memory, so that the next run does not pay for it.
func (s *Server) Settle(ctx context.Context) error {
	return s.With(ctx, "postgres", func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CHECKPOINT")
		return err
	})
}

// Scheduled counts the jobs that the scheduler has. It reads the scheduler's database, because the API gets no status
// of a waiting job until reconcile asks for it, which takes hours in a backlog of millions.
func (s *Server) Scheduled(ctx context.Context, ids []string) (n int, err error) {
	err = s.With(ctx, "jobweaver_scheduler", func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT count(*) FROM unnest($1::uuid[]) AS id
			WHERE EXISTS (SELECT FROM all_jobs WHERE job_id = id)
				OR EXISTS (SELECT FROM members WHERE first_id BETWEEN block_of(id) AND id AND job_id = id)`, ids).Scan(&n)
	})
	return n, err
}

// Clear drops the contestants' databases, so that the vacuum of one contestant does not run in another's round.
func (s *Server) Clear(ctx context.Context) error {
	return s.With(ctx, "postgres", func(conn *pgx.Conn) error {
		for _, name := range append(Databases(), riverDatabase, peerDatabase) {
			sql := "DROP DATABASE IF EXISTS " + pgx.Identifier{name}.Sanitize() + " WITH (FORCE)"
			if _, err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("drop database %s: %w", name, err)
			}
		}
		return nil
	})
}
