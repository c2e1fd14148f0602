package rig

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/outboxdb"
)

// OutboxDatabase is a user's database with an outbox.
const OutboxDatabase = "bench_outbox"

// MakeOutbox makes that database anew, and returns its address.
func (s *Server) MakeOutbox(ctx context.Context) (url string, err error) {
	err = s.With(ctx, "postgres", func(conn *pgx.Conn) error {
		for _, sql := range []string{
			"DROP DATABASE IF EXISTS " + OutboxDatabase + " WITH (FORCE)", "CREATE DATABASE " + OutboxDatabase,
		} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if url, err = migrations.WithDatabase(s.URL(), OutboxDatabase); err != nil {
		return "", err
	}
	if err := outboxdb.Install(ctx, url, outboxdb.Roles{}); err != nil {
		return "", err
	}
	return url, s.Durable(ctx, OutboxDatabase)
}

// StartRelay starts a relay in a process of its own.
func StartRelay(dir, database, gateway string) (*Child, error) {
	return startSelf("relay", dir, []string{
		"RELAY_DATABASE_URL=" + database, "GATEWAY_URL=" + gateway, "HOST=127.0.0.1", "PORT=0",
		"LOG_LEVEL=warn", "LOG_FORMAT=text", "SHUTDOWN_DELAY=0s",
	}, "relay")
}
