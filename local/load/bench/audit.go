package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/rig"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb/auditstore"
	"github.com/jobweaver/jobweaver/shared/apikey"
)

const (
	// auditRate is the rate of single POSTs: the size of the log needs some thousands of entries.
	auditRate = 300
	// auditOwner's key submits the jobs, as in an installation of several owners.
	auditOwner = "bench"
)

// audit is the part that measures what API keys cost: single POSTs without authentication, and with it, where each
// request has an entry in the audit log. All other parts measure without authentication. At the end it measures how
// fast projection's role deletes entries.
func (b *bench) audit(ctx context.Context) error {
	result := &figures.Audit{Rate: auditRate}
	for range b.Settings.Rounds {
		off, err := b.posts(ctx, false, nil)
		if err != nil {
			return err
		}
		var forgotten float64
		on, err := b.posts(ctx, true, func(sys *system) (err error) {
			forgotten, err = forgetAudit(ctx, sys.server)
			return err
		})
		if err != nil {
			return err
		}
		result.Off, result.On = append(result.Off, off), append(result.On, on)
		result.ForgottenPerS = append(result.ForgottenPerS, forgotten)
		b.printf("AUTH=off  %s", off)
		b.printf("AUTH=on   %s; %.0f entries deleted/s", on, forgotten)
	}
	b.results.Audit = result
	return nil
}

// posts measures single POSTs on an installation of their own; after may be nil.
func (b *bench) posts(ctx context.Context, keys bool, after func(*system) error) (cost figures.PostCost, err error) {
	sys := &system{server: b.server, dir: b.folder()}
	defer func() {
		if tidied := b.tidy(context.WithoutCancel(ctx), sys); err == nil {
			err = tidied
		}
	}()
	admin := apikey.New().Reveal()
	var env []string
	if keys {
		env = []string{"AUTH=on", "BOOTSTRAP_API_KEY=" + admin}
	}
	return cost, b.running(ctx, sys, env, func(sys *system) error {
		if keys {
			if sys.api, err = sys.api.As(admin).Owned(ctx, auditOwner); err != nil {
				return err
			}
		}
		empty, err := auditSize(ctx, sys.server)
		if err == nil {
			err = b.warm(ctx, sys)
		}
		if err != nil {
			return err
		}
		if cost, err = b.postCost(ctx, sys, empty); err != nil || after == nil {
			return err
		}
		return after(sys)
	})
}

// postCost measures single POSTs; empty is the size of the log before the batches with which the system was warmed up.
func (b *bench) postCost(ctx context.Context, sys *system, empty rig.Table) (cost figures.PostCost, err error) {
	before, err := auditSize(ctx, sys.server)
	if err != nil {
		return cost, err
	}
	wal, err := sys.server.WALBytes(ctx)
	if err != nil {
		return cost, err
	}
	cpu := sys.cpu()
	l, err := sys.api.Latency(ctx, apiload.Steady{Request: b.noop, Rate: auditRate, For: b.LatencyFor})
	if err != nil {
		return cost, err
	}
	jobs := len(l.Post)
	cost.Post, cost.CPU = figures.Distribute(l.Post), perJob(cpu, sys.cpu(), jobs)
	walAfter, err := sys.server.WALBytes(ctx)
	if err != nil {
		return cost, err
	}
	after, err := auditSize(ctx, sys.server)
	cost.WALBytes = float64(walAfter-wal) / float64(jobs)
	cost.Entries = float64(after.Inserts-before.Inserts) / float64(jobs)
	cost.Bytes = growth(before, after) / float64(jobs)
	cost.BatchBytes = growth(empty, before) / float64(b.Settings.Warm)
	return cost, err
}

func growth(before, after rig.Table) float64 {
	return float64(after.Bytes + after.IndexBytes - before.Bytes - before.IndexBytes)
}

// auditSize returns the number of entries and the size of the log. The index of jobs first collects new entries in a
// list, which is merged before the size is read.
func auditSize(ctx context.Context, server *rig.Server) (log rig.Table, err error) {
	err = server.With(ctx, migrations.API.Database(), func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "VACUUM audit_log"); err != nil {
			return err
		}
		return conn.QueryRow(ctx, `SELECT count(*), pg_table_size('audit_log'), pg_indexes_size('audit_log')
			FROM audit_log`).Scan(&log.Inserts, &log.Bytes, &log.IndexBytes)
	})
	if err != nil {
		return log, fmt.Errorf("look at the audit log: %w", err)
	}
	return log, nil
}

// forgetAudit makes all entries old and returns how many audit_forget deletes a second, in pieces as projection does.
func forgetAudit(ctx context.Context, server *rig.Server) (perS float64, err error) {
	err = server.With(ctx, migrations.API.Database(), func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "UPDATE audit_log SET at = at - interval '60 days'"); err != nil {
			return err
		}
		var all int64
		began := time.Now()
		for gone := int64(1); gone > 0; all += gone {
			err := conn.QueryRow(ctx, "SELECT audit_forget($1, 1000)", auditstore.MinAge).Scan(&gone)
			if err != nil {
				return err
			}
		}
		perS = float64(all) / time.Since(began).Seconds()
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("delete entries of the audit log: %w", err)
	}
	return perS, nil
}
