package migrations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// Role is the database role of a function.
func (s Set) Role(function string) string { return s.installation.InPostgres("jobweaver_" + function) }

// Role is that of an installation without a name.
func Role(function string) string { return Set{}.Role(function) }

// granting is an advisory lock: two concurrent GRANTs on one table may fail each other.
const granting = 0x6a77_6772

// Grant creates the missing roles of set's functions, and grants them exactly the rights of roles/<set>.sql in the
// database at url. After that only these roles and the owner may connect to that database. It sets the passwords, by
// role; a role without one keeps its own. It may run repeatedly, concurrently, and under load.
func Grant(ctx context.Context, url string, set Set, passwords map[string]string) (err error) {
	conn, err := pgpool.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("grant rights in %s database: %w", set.Name, err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	// One transaction: a running function never has fewer rights than it needs.
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", granting); err != nil {
			return err
		}
		if err := makeRoles(ctx, tx, set, passwords); err != nil {
			return err
		}
		if err := stripRoles(ctx, tx, set); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, set.Grants)
		return err
	})
	if err != nil {
		return fmt.Errorf("grant rights in %s database: %w", set.Name, err)
	}
	return nil
}

// Roles returns the roles of the set's functions.
func (s Set) Roles() []string {
	roles := make([]string, len(s.Functions))
	for i, function := range s.Functions {
		roles[i] = s.Role(function)
	}
	return roles
}

// makeRoles makes the missing roles. Roles belong to the server, so a Grant for another of its databases may make the
// same.
func makeRoles(ctx context.Context, tx pgx.Tx, set Set, passwords map[string]string) error {
	there, err := texts(ctx, tx, "SELECT rolname FROM pg_roles WHERE rolname = ANY ($1)", set.Roles())
	if err != nil {
		return err
	}
	for _, role := range set.Roles() {
		if !slices.Contains(there, role) {
			_, err := tx.Exec(ctx, "DO $$ BEGIN CREATE ROLE "+quoted(role)+" LOGIN; "+
				"EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$")
			if err != nil {
				return err
			}
		}
		if err := setPassword(ctx, tx, role, passwords); err != nil {
			return err
		}
	}
	// A user that may not give an attribute may not take it away either, so only existing attributes are revoked.
	mighty, err := texts(ctx, tx, `
		SELECT format('ALTER ROLE %I%s', rolname, concat(
			CASE WHEN rolsuper THEN ' NOSUPERUSER' END, CASE WHEN rolcreatedb THEN ' NOCREATEDB' END,
			CASE WHEN rolcreaterole THEN ' NOCREATEROLE' END, CASE WHEN rolreplication THEN ' NOREPLICATION' END,
			CASE WHEN rolbypassrls THEN ' NOBYPASSRLS' END))
		FROM pg_roles
		WHERE rolname = ANY ($1) AND (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls)`,
		set.Roles())
	if err != nil {
		return err
	}
	return execAll(ctx, tx, mighty)
}

// setPassword sets the password of a role, if there is one for it.
func setPassword(ctx context.Context, tx pgx.Tx, role string, passwords map[string]string) error {
	password, given := passwords[role]
	if !given {
		return nil
	}
	verifier, err := scramVerifier(password)
	if err == nil {
		_, err = tx.Exec(ctx, "ALTER ROLE "+quoted(role)+" PASSWORD '"+verifier+"'")
	}
	if err != nil {
		return fmt.Errorf("set password of %s: %w", role, err)
	}
	return nil
}

// stripRoles revokes all rights in this database, or in this schema of one, from the roles and from PUBLIC, except on
// objects of extensions, and grants the roles CONNECT.
func stripRoles(ctx context.Context, tx pgx.Tx, set Set) error {
	whole := `
		SELECT format('REVOKE ALL ON DATABASE %1$I FROM PUBLIC, %2$s; GRANT CONNECT ON DATABASE %1$I TO %2$s;
			ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON ROUTINES FROM PUBLIC', current_database(), $1::text)`
	if set.schema != "" { // the database has other users
		whole = `
		SELECT format('GRANT CONNECT ON DATABASE %1$I TO %2$s', current_database(), $1::text)
		FROM pg_roles WHERE rolname = ANY (string_to_array($1::text, ', '))
		HAVING NOT bool_and(has_database_privilege(oid, current_database(), 'CONNECT'))`
	}
	statements, err := texts(ctx, tx, whole+`
		UNION ALL
		SELECT format('REVOKE ALL ON SCHEMA %1$I FROM PUBLIC, %2$s; GRANT USAGE ON SCHEMA %1$I TO %2$s',
			current_schema(), $1::text)
		UNION ALL
		SELECT format('REVOKE ALL ON %s %s FROM PUBLIC, %s', things.kind, things.name, $1)
		FROM (
			SELECT CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind, oid::regclass::text AS name, oid
			FROM pg_class
			WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
			UNION ALL
			SELECT 'ROUTINE', oid::regprocedure::text, oid FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
		) AS things
		WHERE NOT EXISTS (SELECT FROM pg_depend WHERE pg_depend.objid = things.oid AND deptype = 'e')`,
		strings.Join(set.Roles(), ", "))
	if err != nil {
		return err
	}
	return execAll(ctx, tx, statements)
}

func execAll(ctx context.Context, tx pgx.Tx, statements []string) error {
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func texts(ctx context.Context, tx pgx.Tx, sql string, arg any) ([]string, error) {
	rows, err := tx.Query(ctx, sql, arg)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
