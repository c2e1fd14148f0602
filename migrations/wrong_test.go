package migrations_test

import (
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// local/suites/upgrade starts each function's process on them.
func TestNoStoreOpensTheDatabaseOfAnother(t *testing.T) {
	t.Parallel()
	stores := []struct {
		set  migrations.Set
		open func(t *testing.T, url string) error
	}{
		{migrations.API, func(t *testing.T, url string) error {
			t.Helper()
			store, err := apidb.Open(t.Context(), url)
			if err == nil {
				store.Close()
			}
			return err
		}},
		{migrations.Scheduler, func(t *testing.T, url string) error {
			t.Helper()
			store, err := schedulerdb.Open(t.Context(), url, schedulerdb.Config{Lease: 1})
			if err == nil {
				store.Close()
			}
			return err
		}},
		{migrations.Worker, func(t *testing.T, url string) error {
			t.Helper()
			store, err := workerdb.Open(t.Context(), url)
			if err == nil {
				store.Close()
			}
			return err
		}},
	}
	for _, store := range stores {
		for _, other := range stores {
			t.Run(store.set.Name+" on "+other.set.Name, func(t *testing.T) {
				t.Parallel()
				err := store.open(t, pgtest.Database(t, other.set))
				if store.set.Name == other.set.Name {
					if err != nil {
						t.Error(err)
					}
					return
				}
				want := `has the schema of ` + other.set.Database() + `, and ` + store.set.Database() + ` is needed`
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "DATABASE_URL: ") {
					t.Errorf("ended with %v, want %q", err, want)
				}
			})
		}
	}
}
