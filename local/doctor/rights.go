package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgpool"
)

const grantAgain = "jobweaver migrate --roles gives each role exactly its rights"

func rights(ctx context.Context, l *look) {
	l.each(false, func(d *database) error {
		var migrated bool
		err := d.conn.QueryRow(ctx, "SELECT to_regclass('goose_db_version') IS NOT NULL").Scan(&migrated)
		if err != nil || !migrated {
			return err
		}
		return l.roles(ctx, d)
	})
	for d := range l.answering() {
		if err := l.user(ctx, d); err != nil {
			l.unseen("%s: %v", d.where, err)
		}
	}
}

// roles compares all roles of a set that the server has.
func (l *look) roles(ctx context.Context, d *database) error {
	needed := d.Set.Rights()
	there, err := texts(ctx, d.conn, "SELECT rolname FROM pg_roles WHERE rolname = ANY ($1)", d.Set.Roles())
	if err != nil || len(there) == 0 {
		return err
	}
	if err := l.everyone(ctx, d); err != nil {
		return err
	}
	for _, role := range there {
		granted, err := migrations.Granted(ctx, d.conn, role)
		if err != nil {
			return err
		}
		for _, difference := range granted.Against(needed[role]) {
			l.find(d.Set.Database(), role+" "+difference, grantAgain)
		}
	}
	// What a role has beside the rights of this database: attributes, and the rights of other roles.
	mighty, err := texts(ctx, d.conn, `
		SELECT format('%s has %s', rolname, attribute)
		FROM pg_roles, unnest(array['SUPERUSER', 'CREATEDB', 'CREATEROLE', 'REPLICATION', 'BYPASSRLS'],
			array[rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls]) AS held (attribute, is_held)
		WHERE is_held AND rolname = ANY ($1)
		UNION ALL
		SELECT format('%s is a member of %s', member::regrole, roleid::regrole)
		FROM pg_auth_members JOIN pg_roles ON pg_roles.oid = member
		WHERE rolname = ANY ($1) AND NOT roleid::regrole::text = ANY ($1)`, append(d.Set.Roles(), d.Set.ServiceRole()))
	for _, what := range mighty {
		l.find(d.Set.Database(), what, "take it away: ALTER ROLE … NO…, or REVOKE")
	}
	return err
}

// everyone finds rights of PUBLIC that let any user of the server in.
func (l *look) everyone(ctx context.Context, d *database) error {
	open, err := texts(ctx, d.conn, `
		SELECT acl.privilege_type || ' on the database'
		FROM pg_database, aclexplode(coalesce(datacl, acldefault('d', datdba))) AS acl
		WHERE datname = current_database() AND acl.grantee = 0
			AND current_schema() = 'public' -- a database of several schemas may have other users
		UNION ALL
		SELECT acl.privilege_type || ' on the schema' FROM pg_namespace, aclexplode(nspacl) AS acl
		WHERE nspname = current_schema() AND acl.grantee = 0`)
	for _, right := range open {
		l.find(d.Set.Database(), "every user of the server has "+right, grantAgain)
	}
	return err
}

// lacking has those of the rights that the user of a session does not have.
const lacking = `SELECT trim(concat_ws(' ', right_to, 'on', object, col))
	FROM unnest($1::text[], $2::text[], $3::text[]) AS r (right_to, object, col)
	WHERE NOT coalesce(CASE
		WHEN right_to = 'EXECUTE' THEN (SELECT has_function_privilege(oid, 'EXECUTE') FROM pg_proc
			WHERE pronamespace = current_schema()::regnamespace AND proname = object LIMIT 1)
		WHEN right_to = 'USAGE' THEN has_sequence_privilege(to_regclass(quote_ident(object)), 'USAGE')
		WHEN col = '' THEN has_table_privilege(to_regclass(quote_ident(object)), right_to)
		ELSE has_column_privilege(to_regclass(quote_ident(object)), col, right_to) END, false)`

// user checks the user of an address: it owns nothing unless it takes the role of the service, and has what its
// functions need.
func (l *look) user(ctx context.Context, d *database) error {
	var name string
	var owns, serviceRole bool
	err := d.conn.QueryRow(ctx, `
		SELECT current_user, rolsuper OR EXISTS (SELECT FROM pg_class WHERE relnamespace = current_schema()::regnamespace
			AND relkind = 'r' AND pg_has_role(current_user, relowner, 'MEMBER')), to_regrole($1) IS NOT NULL
		FROM pg_roles WHERE rolname = current_user`, d.Set.ServiceRole()).Scan(&name, &owns, &serviceRole)
	switch {
	case err != nil:
		return err
	case d.Acts && pgpool.IsBehind(d.Address.Reveal()):
		l.fact("%s: behind a pooler the functions of serve have all rights of %s", d.where, name)
		return nil
	case d.Acts && !serviceRole:
		l.find(d.where, "there is no role "+d.Set.ServiceRole()+": the functions have all rights of "+name,
			"start serve once with a user that may create roles")
		return nil
	case d.Acts:
		return nil // its functions have the rights of the role, which are compared
	case owns:
		l.find(d.where, "the functions log in as "+name+", which owns the tables or is a superuser",
			"let them log in as "+d.Set.Roles()[0]+" and so on (jobweaver migrate --roles)")
		return nil
	}
	return l.lacks(ctx, d, name)
}

func (l *look) lacks(ctx context.Context, d *database, user string) error {
	var kinds, objects, columns []string
	for role, needed := range d.Set.Rights() {
		if d.Function != Serve && role != d.Set.Role(d.Function) {
			continue
		}
		for right, of := range needed {
			kind, object, _ := strings.Cut(right, " ")
			if len(of) == 0 {
				of = []string{""}
			}
			for _, column := range of {
				kinds, objects, columns = append(kinds, kind), append(objects, object), append(columns, column)
			}
		}
	}
	lacks, err := texts(ctx, d.conn, lacking, kinds, objects, columns)
	slices.Sort(lacks)
	for _, right := range slices.Compact(lacks) {
		l.find(d.where, user+" lacks "+right, grantAgain)
	}
	return err
}

func texts(ctx context.Context, conn *pgx.Conn, sql string, args ...any) ([]string, error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
