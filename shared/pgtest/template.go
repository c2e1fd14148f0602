package pgtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/migrations"
)

// templating is an advisory lock: one process makes a template, the others wait for it.
const templating = 0x6a77_7470

// ensureTemplate makes the template database of set unless it exists. Its name contains a hash of the
// migrations and rights, so that a server that outlives them gets a new template.
func ensureTemplate(ctx context.Context, server string, set migrations.Set) (name string, err error) {
	name, err = templateName(set)
	if err != nil {
		return "", err
	}
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }() // closing the connection releases the lock
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", templating); err != nil {
		return "", err
	}
	// Only a finished template is marked as one: a process that dies half-way leaves none.
	var finished bool
	err = conn.QueryRow(ctx, "SELECT datistemplate FROM pg_database WHERE datname = $1", name).Scan(&finished)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", err
	}
	if finished {
		return name, nil
	}
	return name, makeTemplate(ctx, conn, server, name, set)
}

func makeTemplate(ctx context.Context, conn *pgx.Conn, server, name string, set migrations.Set) error {
	url, err := migrations.WithDatabase(server, name)
	if err != nil {
		return err
	}
	for _, sql := range []string{"DROP DATABASE IF EXISTS " + name + " WITH (FORCE)", "CREATE DATABASE " + name} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if err := migrations.Up(ctx, url, set, nil); err != nil {
		return err
	}
	if set.Grants != "" {
		if err := migrations.Grant(ctx, url, set, nil); err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+name+" IS_TEMPLATE true")
	return err
}

func templateName(set migrations.Set) (string, error) {
	hash := sha256.New()
	files, err := fs.Glob(set.FS, "*.sql")
	if err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := fs.ReadFile(set.FS, file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", file, len(text), text)
	}
	fmt.Fprint(hash, set.Grants)
	return fmt.Sprintf("template_%s_%x", set.Name, hash.Sum(nil)[:8]), nil
}
