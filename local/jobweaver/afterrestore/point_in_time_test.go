package afterrestore_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/local/jobweaver/afterrestore"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// TestServerRestoredToOneMomentNeedsNoReconciliation backs up a server while it works, and archives its WAL, as CloudNativePG
// and similar tools do; loses the server; and restores it to a moment. The three databases then are of the same moment:
// they do not differ, and known jobs continue. The broker has records of later moments, so it is emptied.
func TestServerRestoredToOneMomentNeedsNoReconciliation(t *testing.T) {
	t.Parallel()
	wants(t)
	dir := t.TempDir()
	server, archive := filepath.Join(dir, "server"), filepath.Join(dir, "server", "archive")
	if err := os.MkdirAll(archive, 0o700); err != nil {
		t.Fatal(err)
	}
	h := newFixtureOn(t, localpostgres.Config{Dir: server, Settings: map[string]string{
		"wal_level": "replica", "archive_mode": "on", "archive_command": "cp %p '" + archive + "/%f'",
	}})
	broker, err := localkafka.StartEmbedded(localkafka.Config{Dir: filepath.Join(dir, "kafka")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Stop() })
	h.brokers = broker.Brokers()
	p := &past{jobs: map[string]string{}}
	var before map[string]seen
	h.live(func(ctx context.Context, c *client.Client) error {
		if err := p.submit(ctx, c, "held", `"payload": {"hold": true}`); err != nil {
			return err
		}
		if err := p.submitMany(ctx, c, 100); err != nil {
			return err
		}
		if err := h.baseBackup(ctx, filepath.Join(server, "data"), filepath.Join(dir, "base")); err != nil {
			return err
		}
		if err := p.submitMany(ctx, c, 100); err != nil {
			return err
		}
		if err := until(ctx, c, p.jobs["held"], "RUNNING", has("RUNNING")); err != nil {
			return err
		}
		for _, id := range p.plain[:150] {
			if err := until(ctx, c, id, "COMPLETED", has("COMPLETED")); err != nil {
				return err
			}
		}
		before = h.look()
		if err := h.exec(ctx, "select pg_create_restore_point('moment')"); err != nil {
			return err
		}
		if err := p.submitMany(ctx, c, 50); err != nil {
			return err
		}
		if err := until(ctx, c, p.plain[249], "COMPLETED", has("COMPLETED")); err != nil {
			return err
		}
		close(h.open)
		if err := until(ctx, c, p.jobs["held"], "COMPLETED", has("COMPLETED")); err != nil {
			return err
		}
		if err := h.emptyTopics(ctx); err == nil || !strings.Contains(err.Error(), "stop all functions first") {
			t.Errorf("topics of functions that run are emptied: %v", err)
		}
		return h.exec(ctx, "select pg_switch_wal()")
	})
	if err := errors.Join(h.server.Stop(), os.RemoveAll(filepath.Join(server, "data"))); err != nil {
		t.Fatal(err)
	}
	// The restored server has the base backup and the archived WAL, and a setting with the moment to restore.
	if err := os.Rename(filepath.Join(dir, "base"), filepath.Join(server, "data")); err != nil {
		t.Fatal(err)
	}
	again := newFixtureOn(t, localpostgres.Config{Dir: server, Settings: map[string]string{
		"restore_command": "cp '" + archive + "/%f' %p", "recovery_target_name": "moment",
		"recovery_target_action": "promote",
	}})
	close(again.open)
	again.untilRestored(t.Context())
	again.brokers = h.brokers
	if err := again.emptyTopics(t.Context()); err != nil {
		t.Fatal(err)
	}
	restored := again.look()
	if report := again.afterRestore(); report != (afterrestore.Report{Jobs: len(restored)}) {
		t.Errorf("the databases differ: %+v", report)
	}
	again.live(func(ctx context.Context, c *client.Client) error {
		for id := range before {
			if err := until(ctx, c, id, "COMPLETED", has("COMPLETED")); err != nil {
				return fmt.Errorf("%s: %w", p.named(id), err)
			}
		}
		var refused *client.Error
		if _, err := c.Get(ctx, p.plain[249], 0); !errors.As(err, &refused) || refused.Status != 404 {
			t.Errorf("what came after the moment: %v", err)
		}
		return nil
	})
	p.check(again, restored, again.look())
}

func (h *fixture) emptyTopics(ctx context.Context) error {
	return kafkaevent.EmptyTopics(ctx,
		kafkaevent.Config{Brokers: h.brokers, ReplicationFactor: 1}, jobevent.Topics([]string{"default"}))
}

// untilRestored waits until the server accepts writes. While it restores, it serves only reads.
func (h *fixture) untilRestored(ctx context.Context) {
	h.t.Helper()
	conn, err := pgx.Connect(ctx, h.server.URL())
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for restoring, began := true, time.Now(); restoring; {
		if err := conn.QueryRow(ctx, "select pg_is_in_recovery()").Scan(&restoring); err != nil || time.Since(began) > time.Minute {
			h.t.Fatalf("still restoring after %s: %v", time.Since(began), err)
		}
	}
}

func (h *fixture) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, h.server.URL())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// baseBackup copies the data folder of a running server, as PostgreSQL's manual describes under "Making a Base Backup
// Using the Low Level API".
func (h *fixture) baseBackup(ctx context.Context, data, to string) error {
	conn, err := pgx.Connect(ctx, h.server.URL())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "select pg_backup_start('base', fast => true)"); err != nil {
		return err
	}
	if err := copyData(data, to); err != nil {
		return err
	}
	var label string
	if err := conn.QueryRow(ctx, "select labelfile from pg_backup_stop()").Scan(&label); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(to, "backup_label"), []byte(label), 0o600),
		os.WriteFile(filepath.Join(to, "recovery.signal"), nil, 0o600))
}

// copyData leaves out the files that a backup must not have. A file that disappears during the copy is not needed.
func copyData(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		rest := strings.TrimPrefix(path, from)
		switch {
		case errors.Is(err, fs.ErrNotExist) || rest == "/postmaster.pid":
			return nil
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(to+rest, 0o700)
		case strings.HasPrefix(rest, "/pg_wal/"):
			return nil
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(to+rest, content, 0o600)
	})
}
