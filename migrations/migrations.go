// Package migrations holds the schemas of the three databases and updates databases to them.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

//go:embed api/*.sql scheduler/*.sql worker/*.sql roles/*.sql
var files embed.FS

// Set is the schema of one database, as goose migrations, and the rights of its functions.
type Set struct {
	Name      string
	FS        fs.FS
	Functions []string // the functions that use it, each with a role of its own
	Grants    string   // SQL that gives the roles their rights
}

// The schemas.
var (
	API       = set("api", "gateway", "projection", "bulk", "cron", "notify")
	Scheduler = set("scheduler", "ingest", "dispatch", "outcome", "command", "watchdog", "retention")
	Worker    = set("worker", "runjob", "pull")
)

func set(name string, functions ...string) Set {
	dir, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // the name is no path
	}
	grants, err := files.ReadFile("roles/" + name + ".sql")
	if err != nil {
		panic(err) // each has one
	}
	return Set{Name: name, FS: dir, Functions: functions, Grants: string(grants)}
}

// Database returns the database's name on a server that holds all three.
func (s Set) Database() string { return "jobweaver_" + s.Name }

// Up applies the migrations of set that the database at url lacks. Of concurrent processes one applies them and the
// others wait.
func Up(ctx context.Context, url string, set Set) error {
	cfg, err := pgpool.ReadAddress(url)
	if err != nil {
		return fmt.Errorf("migrate %s database: %w", set.Name, err)
	}
	db := stdlib.OpenDB(*cfg)
	defer func() { _ = db.Close() }()
	provider, err := provider(db, set)
	if err != nil {
		return fmt.Errorf("migrate %s database: %w", set.Name, err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate %s database: %w", set.Name, err)
	}
	return nil
}

// Versions returns the newest migration of the database at url, and the newest of set. A database that a newer
// version has migrated is ahead of set: functions of this version work on it.
func Versions(ctx context.Context, url string, set Set) (database, own int64, err error) {
	cfg, err := pgpool.ReadAddress(url)
	if err != nil {
		return 0, 0, fmt.Errorf("read version of %s database: %w", set.Name, err)
	}
	db := stdlib.OpenDB(*cfg)
	defer func() { _ = db.Close() }()
	provider, err := provider(db, set)
	if err != nil {
		return 0, 0, fmt.Errorf("read version of %s database: %w", set.Name, err)
	}
	if database, own, err = provider.GetVersions(ctx); err != nil {
		return 0, 0, fmt.Errorf("read version of %s database: %w", set.Name, err)
	}
	return database, own, nil
}

func provider(db *sql.DB, set Set) (*goose.Provider, error) {
	// Asks once a second for five minutes.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, set.FS, goose.WithSessionLocker(locker))
}
