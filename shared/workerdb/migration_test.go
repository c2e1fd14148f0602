package workerdb_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// An attempt that was claimed before there were blocks does not start again after the migration.
func TestTheMigrationToBlocksKeepsAttemptsTaken(t *testing.T) {
	t.Parallel()
	before := migrations.Worker
	before.Name, before.Grants = "worker_before_blocks", ""
	files := fstest.MapFS{}
	for _, name := range []string{"00001_baseline.sql", "00002_installation_secrets.sql"} {
		text, err := fs.ReadFile(migrations.Worker.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	before.FS = files
	url := pgtest.Database(t, before)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	first := uuid.Must(uuid.NewV7())
	open, over, free := order(), order(), order()
	open.JobID, over.JobID, free.JobID = jobevent.InBlock(first, 0), jobevent.InBlock(first, 63), jobevent.InBlock(first, 5)
	for _, sql := range []string{
		`INSERT INTO execution_attempts (job_id, attempt, trace_id, queue, worker_id, timeout_ms)
			VALUES ($1, 1, $1, 'default', 'w1', 1000), ($2, 1, $2, 'default', 'w2', 1000)`,
		`UPDATE execution_attempts SET outcome = 'interrupted', finished_at = now() WHERE job_id NOT IN ($1) AND job_id IN ($2)`,
	} {
		if _, err := pool.Exec(t.Context(), sql, open.JobID, over.JobID); err != nil {
			t.Fatal(err)
		}
	}
	if err := migrations.Up(t.Context(), url, migrations.Worker, func(string) {}); err != nil {
		t.Fatal(err)
	}
	store, err := workerdb.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	got, err := store.Claim(t.Context(), "w1", []workerdb.Order{open, over, free})
	if err != nil || got[0].State != workerdb.OpenMine || got[1].State != workerdb.Settled || got[2].State != workerdb.Claimed {
		t.Errorf("claimed %+v, %v", got, err)
	}
}
