package cron

import (
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
)

// stores are what cron uses of the API's database.
type stores struct {
	*apidb.Store
	schedules *schedulestore.Store
}

func newStores(db *apidb.Store) stores {
	return stores{
		Store:     db,
		schedules: schedulestore.New(db),
	}
}
