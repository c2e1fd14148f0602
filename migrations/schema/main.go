// Command schema writes api.sql, scheduler.sql and worker.sql: each database as its migrations leave it, so that a
// table can be read in one place. Nothing executes these files.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/migrations"
)

//go:generate go -C ../.. run ./migrations/schema

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := write(ctx, filepath.Join("migrations", "schema"))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(ctx context.Context, dir string) (err error) {
	data, err := os.MkdirTemp("", "jobweaver-schema-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(data) }()
	server, err := localpostgres.Start(ctx, localpostgres.Config{Dir: data, NoSync: true})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, server.Stop()) }()
	urls, err := migrations.EnsureDatabases(ctx, server.URL())
	if err != nil {
		return err
	}
	for _, db := range []struct {
		set migrations.Set
		url string
	}{{migrations.API, urls.API}, {migrations.Scheduler, urls.Scheduler}, {migrations.Worker, urls.Worker}} {
		if err := migrations.Up(ctx, db.url, db.set, nil); err != nil {
			return err
		}
		text, err := read(ctx, db.url)
		if err != nil {
			return fmt.Errorf("read schema of %s: %w", db.set.Name, err)
		}
		text = "-- The database " + db.set.Database() + " as its migrations leave it. Written by make generate.\n" + text
		if err := os.WriteFile(filepath.Join(dir, db.set.Name+".sql"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// objects are the objects of a database, each with the SQL that would make it. What belongs to a table follows it.
const objects = `
with mine as (
    select c.oid, c.relname, c.relkind, c.reloptions from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relname !~ '^goose_'
), made (kind, place, name, sql) as (
    select 1, '', s.relname,
        format('CREATE SEQUENCE %I INCREMENT BY %s START WITH %s;', s.relname, seqincrement, seqstart)
    from mine s join pg_sequence on seqrelid = s.oid
    where not exists (select from pg_depend d
                      where d.objid = s.oid and d.classid = 'pg_class'::regclass and d.deptype in ('a', 'i'))
    union all
    select 2, t.relname, '', format(E'CREATE TABLE %I (\n%s\n)%s;', t.relname,
        (select string_agg(line, E',\n' order by place) from (
            select a.attnum::int, '    ' || rpad(quote_ident(a.attname), w.width) || ' ' ||
                format_type(a.atttypid, a.atttypmod) ||
                case when a.attcollation not in (0, y.typcollation)
                     then ' COLLATE ' || a.attcollation::regcollation else '' end ||
                case when a.attnotnull then ' NOT NULL' else '' end ||
                case when a.attidentity <> '' then ' GENERATED ALWAYS AS IDENTITY' else '' end ||
                case when d.adbin is null then ''
                     when a.attgenerated <> ''
                     then ' GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, d.adrelid) || ') STORED'
                     else ' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) end
            from pg_attribute a
            join pg_type y on y.oid = a.atttypid
            left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
            where a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
            union all
            select 10000 + row_number() over (order by k.contype <> 'p', k.conname),
                format('    CONSTRAINT %I %s', k.conname, pg_get_constraintdef(k.oid, true))
            from pg_constraint k where k.conrelid = t.oid and k.contype <> 'n'
        ) as l (place, line)),
        ' WITH (' || array_to_string(t.reloptions, ', ') || ')')
    from mine t
    cross join lateral (select max(length(quote_ident(attname))) as width from pg_attribute
                        where attrelid = t.oid and attnum > 0 and not attisdropped) w
    where t.relkind in ('r', 'p')
    union all
    select 2, t.relname, '1' || i.relname, pg_get_indexdef(i.oid) || ';'
    from mine i join pg_index x on x.indexrelid = i.oid join mine t on t.oid = x.indrelid
    where not exists (select from pg_constraint where conindid = i.oid)
    union all
    select 2, t.relname, '2' || g.tgname, pg_get_triggerdef(g.oid, true) || ';'
    from pg_trigger g join mine t on t.oid = g.tgrelid where not g.tgisinternal
    union all
    select 2, t.relname, '3' || s.stxname, pg_get_statisticsobjdef(s.oid) || ';'
    from pg_statistic_ext s join mine t on t.oid = s.stxrelid
    union all
    select 2, t.relname, '4' || a.attname,
        format('ALTER TABLE %I ALTER %I SET STATISTICS %s;', t.relname, a.attname, a.attstattarget)
    from pg_attribute a join mine t on t.oid = a.attrelid where a.attstattarget >= 0
    union all
    select 2, t.relname, '5' || a.attname, format('ALTER TABLE %I ALTER %I SET STORAGE %s;', t.relname, a.attname,
        case a.attstorage when 'e' then 'EXTERNAL' when 'm' then 'MAIN' when 'p' then 'PLAIN' else 'EXTENDED' end)
    from pg_attribute a join mine t on t.oid = a.attrelid join pg_type y on y.oid = a.atttypid
    where a.attnum > 0 and t.relkind = 'r' and a.attstorage <> y.typstorage
    union all
    select 2, t.relname, '6' || a.attname, format('ALTER TABLE %I ALTER %I SET COMPRESSION %s;', t.relname, a.attname,
        case a.attcompression when 'l' then 'lz4' else 'pglz' end)
    from pg_attribute a join mine t on t.oid = a.attrelid where a.attcompression <> ''
    union all
    select 3, '', v.relname, format(E'CREATE VIEW %I AS\n%s', v.relname, pg_get_viewdef(v.oid, true))
    from mine v where v.relkind = 'v'
    union all
    select 4, '', p.proname, pg_get_functiondef(p.oid) || ';'
    from pg_proc p where p.pronamespace = 'public'::regnamespace
      and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
)
select sql from made order by kind, place collate "C", name collate "C"`

func read(ctx context.Context, url string) (string, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, objects)
	if err != nil {
		return "", err
	}
	made, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, sql := range made {
		if !strings.HasPrefix(sql, "CREATE INDEX") && !strings.HasPrefix(sql, "CREATE UNIQUE INDEX") &&
			!strings.HasPrefix(sql, "ALTER") {
			text.WriteString("\n")
		}
		text.WriteString(strings.ReplaceAll(sql, "public.", "") + "\n")
	}
	return text.String(), nil
}
