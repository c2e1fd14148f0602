package migrations

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/shared/installation"
	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// Layout is where an installation has its tables: in three databases, or in three schemas of one.
type Layout struct {
	Installation installation.Name `envconfig:"INSTALLATION"`
	Schemas      bool              `envconfig:"DATABASE_SCHEMAS" desc:"true: three schemas of the database in DATABASE_URL, instead of three databases; from the first start on"`
}

// Sets returns the schemas of the installation.
func (l Layout) Sets() []Set { return []Set{l.Of(API), l.Of(Scheduler), l.Of(Worker)} }

var roles = regexp.MustCompile(`\bjobweaver_`)

// Of returns a set as the installation has it.
func (l Layout) Of(set Set) Set {
	set.installation = l.Installation
	set.Grants = roles.ReplaceAllLiteralString(set.Grants, l.Installation.InPostgres("jobweaver_"))
	if l.Schemas {
		set.schema = set.Database()
		set.FS = in(set.FS, set.schema)
	}
	return set
}

// in returns migrations for another schema than public. Functions with the rights of their owner name the schema of
// tables, since they have a search path without it.
func in(files fs.FS, schema string) fs.FS {
	own := fstest.MapFS{}
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		own[path] = &fstest.MapFile{Data: bytes.ReplaceAll(text, []byte("public."), []byte(schema+"."))}
		return err
	})
	if err != nil {
		panic(err) // the files are embedded
	}
	return own
}

// Address returns the address of a set of the layout on a server, or in the database of its address.
func (l Layout) Address(server string, set Set) (string, error) {
	set.installation = l.Installation
	if l.Schemas {
		return pgpool.With(server, "search_path", set.Database())
	}
	return WithDatabase(server, set.Database())
}

// creating is an advisory lock: two concurrent CREATE DATABASE may fail each other.
const creating = 0x6a77_6462

// Ensure creates those of the three databases, or schemas, that are missing, and returns their addresses.
func (l Layout) Ensure(ctx context.Context, server string) (urls URLs, err error) {
	urls.installation = l.Installation
	for set, to := range map[*Set]*string{&API: &urls.API, &Scheduler: &urls.Scheduler, &Worker: &urls.Worker} {
		if *to, err = l.Address(server, *set); err != nil {
			return URLs{}, err
		}
	}
	conn, err := pgpool.Connect(ctx, server)
	if err != nil {
		return URLs{}, fmt.Errorf("create databases: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }() // closing releases the lock
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", creating); err != nil {
		return URLs{}, fmt.Errorf("create databases: %w", err)
	}
	sets := l.Sets()
	for i, set := range sets {
		err := l.ensure(ctx, conn, set.Database())
		if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == insufficientPrivilege {
			return URLs{}, fmt.Errorf("%w: an administrator of the server can, by\n%s", err, l.creation(conn.Config(), sets[i:]))
		}
		if err != nil {
			return URLs{}, fmt.Errorf("create %s: %w", set.Database(), err)
		}
	}
	return urls, nil
}

const insufficientPrivilege = "42501"

// creation returns the SQL by which an administrator creates databases or schemas for a user.
func (l Layout) creation(as *pgx.ConnConfig, sets []Set) string {
	user := quoted(as.User)
	if l.Schemas {
		return "GRANT CREATE ON DATABASE " + quoted(as.Database) + " TO " + user + ";"
	}
	var statements []string
	for _, set := range sets {
		statements = append(statements, "CREATE DATABASE "+set.Database()+" OWNER "+user+";")
	}
	return strings.Join(statements, "\n") + "\n-- or set DATABASE_SCHEMAS=true, for schemas of the database " + as.Database
}

func (l Layout) ensure(ctx context.Context, conn *pgx.Conn, name string) error {
	look, create := "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", "CREATE DATABASE "
	if l.Schemas {
		look, create = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", "CREATE SCHEMA "
	}
	var there bool
	if err := conn.QueryRow(ctx, look, name).Scan(&there); err != nil || there {
		return err
	}
	_, err := conn.Exec(ctx, create+quoted(name))
	return err
}
