package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

func settings(_ context.Context, l *look) {
	for _, e := range l.Environments {
		for _, err := range e.Wrong {
			setting, _, _ := strings.Cut(err.Error(), ":")
			l.find(e.Name, err.Error(), "correct "+setting+" (docs/settings.md): the process does not start with it")
		}
		for _, name := range e.Misspelt {
			l.find(e.Name, "unknown variable "+name, "rename it, or remove it: it has no effect")
		}
	}
	l.agree("KAFKA_BROKERS", func(e *Environment) (string, bool) {
		return strings.Join(e.Host.Kafka.Brokers, ","), e.Name != "notify"
	})
	l.agree("QUEUES", func(e *Environment) (string, bool) {
		return strings.Join(e.Host.Queues, ","), e.runs("gateway", "cron")
	})
}

// agree finds processes that have another value of a setting than the first one that needs it.
func (l *look) agree(setting string, of func(*Environment) (value string, needs bool)) {
	var first *Environment
	for i := range l.Environments {
		e := &l.Environments[i]
		value, needs := of(e)
		if !needs {
			continue
		}
		if first == nil {
			first = e
			continue
		}
		if other, _ := of(first); other != value {
			l.find(e.Name, setting+" is not that of "+first.Name, "give both the same "+setting)
		}
	}
}

func answers(_ context.Context, l *look) {
	for _, d := range l.databases {
		if d.err == nil {
			l.fact("%s answers", d.where)
			continue
		}
		l.find(d.where, "it cannot be used: "+d.err.Error(), whatHelps(d))
	}
}

func whatHelps(d *database) string {
	switch sentence := pgpool.Outage(d.err); {
	case strings.Contains(sentence, "password"):
		return "set the password of its role again: jobweaver migrate --roles --passwords FOLDER"
	case strings.Contains(sentence, "does not exist"):
		return "create it: jobweaver migrate, or start jobweaver serve"
	case strings.Contains(sentence, "pooler"):
		return "let DATABASE_DIRECT_URL name the server itself"
	case strings.Contains(sentence, "no connection left"):
		return "raise max_connections, or lower pool_max_conns (docs/operations.md#sizing)"
	case strings.Contains(sentence, "no writes"):
		return "let the address lead to the primary: name all hosts of the cluster in it"
	case strings.Contains(sentence, "certificate"):
		return "give sslrootcert the CA of the server, and use the name that its certificate has"
	case strings.Contains(sentence, "refuses"):
		return "admit the user in pg_hba.conf and by GRANT CONNECT: jobweaver migrate --roles"
	}
	return "start the server, or correct host and port in its address"
}

func clocks(ctx context.Context, l *look) {
	l.each(true, func(d *database) error {
		before := l.Now()
		var at time.Time
		if err := d.conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&at); err != nil {
			return err
		}
		after := l.Now()
		// The server has read its clock somewhere between.
		var off time.Duration
		if at.Before(before) {
			off = before.Sub(at)
		} else if at.After(after) {
			off = at.Sub(after)
		}
		if off > l.limits.clocks {
			l.find(d.where, fmt.Sprintf("its clock and that of this machine differ by %s", off.Round(time.Millisecond)),
				"synchronize both by NTP: tokens, signatures and certificates depend on it")
		}
		l.fact("%s: at most %s apart", d.where, (off + after.Sub(before)).Round(time.Millisecond))
		return nil
	})
	l.unseen("the clocks of the brokers, which nothing depends on")
}

var newest = map[string]string{
	migrations.API.Name: apidb.NewestOfSchema, migrations.Scheduler.Name: schedulerdb.NewestOfSchema,
	migrations.Worker.Name: workerdb.NewestOfSchema,
}

func versions(ctx context.Context, l *look) {
	l.each(true, func(d *database) error {
		var number int
		var name string
		err := d.conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int, current_setting('server_version')").
			Scan(&number, &name)
		if err != nil {
			return err
		}
		l.fact("%s: PostgreSQL %s", d.where, name)
		if number/10000 < l.limits.postgres {
			l.find(d.where, "PostgreSQL "+name+" is too old",
				fmt.Sprintf("upgrade it to %d or later, best 18", l.limits.postgres))
		}
		return nil
	})
	l.each(false, func(d *database) error { return l.migrated(ctx, d) })
	<-l.brokers.done
	if l.brokers.is != nil && l.brokers.is.TooOld() {
		l.find("KAFKA_BROKERS", "the brokers are older than Apache Kafka 2.3", "upgrade them: JobWeaver is tested on 4.1")
	}
}

func (l *look) migrated(ctx context.Context, d *database) error {
	const do = "run jobweaver migrate before the functions of this version"
	own, err := d.Set.Newest()
	if err != nil {
		return err
	}
	var mayRead bool
	err = d.conn.QueryRow(ctx,
		"SELECT coalesce(has_table_privilege(to_regclass('goose_db_version'), 'SELECT'), false)").Scan(&mayRead)
	if err != nil {
		return err
	}
	if !mayRead { // a function's role: it sees the catalog only
		has, err := pgpool.HasSchema(ctx, d.conn, newest[d.Set.Name])
		if err == nil && !has {
			l.find(d.where, "it lacks "+newest[d.Set.Name]+", which this version needs", do)
		}
		return err
	}
	var is int64
	err = d.conn.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").
		Scan(&is)
	switch {
	case err != nil:
		return err
	case is < own:
		l.find(d.where, fmt.Sprintf("it has migration %d, and this version needs %d", is, own), do)
	default:
		l.fact("%s: migration %d of %d", d.where, is, own)
	}
	invalid, err := texts(ctx, d.conn, `SELECT indexrelid::regclass::text FROM pg_index
		JOIN pg_class ON pg_class.oid = indexrelid WHERE NOT indisvalid AND relnamespace = current_schema()::regnamespace`)
	for _, index := range invalid {
		l.find(d.where, "index "+index+" is not valid: its creation was interrupted, or is under way",
			"REINDEX INDEX CONCURRENTLY "+index)
	}
	return err
}
