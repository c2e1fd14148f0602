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
	"github.com/jackc/pgx/v5/pgxpool"

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

// Pool returns a pool for a test's own SQL, which opens a connection when one is first needed.
func Pool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

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

// idle has connections to the server that no test uses. A new one takes 4 ms of the server's processor time, and every
// test makes and drops a database.
var idle struct {
	sync.Mutex
	conns []*pgx.Conn
}

func execute(server, sql string) error {
	ctx := context.Background() // cleanups run after the test's own context has ended
	conn, err := connect(ctx, server)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, sql); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", sql, err), conn.Close(ctx))
	}
	idle.Lock()
	defer idle.Unlock()
	idle.conns = append(idle.conns, conn)
	return nil
}

func closeIdle() (err error) {
	idle.Lock()
	defer idle.Unlock()
	for _, conn := range idle.conns {
		err = errors.Join(err, conn.Close(context.Background()))
	}
	idle.conns = nil
	return err
}

func connect(ctx context.Context, server string) (*pgx.Conn, error) {
	idle.Lock()
	if last := len(idle.conns) - 1; last >= 0 {
		defer idle.Unlock()
		conn := idle.conns[last]
		idle.conns = idle.conns[:last]
		return conn, nil
	}
	idle.Unlock()
	return pgx.Connect(ctx, server)
}
