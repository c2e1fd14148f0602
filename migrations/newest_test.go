package migrations_test

import (
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// A function that starts before its migrations have run must not begin: its statements would fail one after another.
func TestEachStoreWaitsForTheNewestMigrationOfItsDatabase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set    migrations.Set
		newest string
	}{
		{migrations.API, apidb.NewestOfSchema},
		{migrations.Scheduler, schedulerdb.NewestOfSchema},
		{migrations.Worker, workerdb.NewestOfSchema},
	} {
		t.Run(c.set.Name, func(t *testing.T) {
			t.Parallel()
			if !has(t, c.set, c.newest) {
				t.Errorf("NewestOfSchema is %s, which the schema lacks", c.newest)
			}
			before := c.set
			before.Name, before.Grants, before.FS = c.set.Name+"_before", "", withoutLast(t, c.set.FS)
			if before.FS != nil && has(t, before, c.newest) {
				t.Errorf("NewestOfSchema is %s, which was there before the newest migration: name something that it brings",
					c.newest)
			}
		})
	}
}

func has(t *testing.T, set migrations.Set, thing string) bool {
	t.Helper()
	pool, err := pgpool.Open(t.Context(), pgtest.Database(t, set))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	there, err := pgpool.HasSchema(t.Context(), pool, thing)
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// withoutLast returns the migrations before the newest one; nil: there are none.
func withoutLast(t *testing.T, files fs.FS) fs.FS {
	t.Helper()
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 1 {
		return nil
	}
	slices.Sort(names)
	some := fstest.MapFS{}
	for _, name := range names[:len(names)-1] {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		some[name] = &fstest.MapFile{Data: text}
	}
	return some
}
