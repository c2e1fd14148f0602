// Package pgtest gives each test a migrated PostgreSQL database of its own.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/migrations"
)

// Database returns the address of a new database with set's schema, dropped when the test ends. It is copied
// from a template, which every process on the server shares.
func Database(t testing.TB, set migrations.Set) (url string) {
	t.Helper()
	server, err := serverURL()
	if err != nil {
		t.Fatal(err)
	}
	template, err := templates.of(server, set)
	if err != nil {
		t.Fatal(err)
	}
	// The default strategy, wal_log, reads and writes each page through the buffers, and takes twice the processor time.
	return create(t, server, set.Name, " TEMPLATE "+template+" STRATEGY file_copy")
}

// Empty returns the address of a new database without any schema of JobWeaver, dropped when the test ends.
func Empty(t testing.TB) (url string) {
	t.Helper()
	server, err := serverURL()
	if err != nil {
		t.Fatal(err)
	}
	return create(t, server, "empty", "")
}

func create(t testing.TB, server, kind, how string) (url string) {
	t.Helper()
	name := strings.ToLower("test_" + kind + "_" + rand.Text())
	url, err := migrations.WithDatabase(server, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := execute(server, "CREATE DATABASE "+name+how); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// FORCE: a test may have left a connection on purpose.
		if err := execute(server, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return url
}

// As returns the address of a database with the rights of a function's role.
func As(url, function string) string { return url + "&role=" + migrations.Role(function) }

// templates has the templates that this process has already made or found.
var templates = templateCache{names: map[string]string{}}

type templateCache struct {
	mu    sync.Mutex
	names map[string]string // by set
}

func (c *templateCache) of(server string, set migrations.Set) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name, ok := c.names[set.Name]; ok {
		return name, nil
	}
	name, err := ensureTemplate(context.Background(), server, set)
	if err != nil {
		return "", fmt.Errorf("make template database: %w", err)
	}
	c.names[set.Name] = name
	return name, nil
}

func execute(server, sql string) (err error) {
	ctx := context.Background() // cleanups run after the test's own context has ended
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}
