package cron

import "github.com/jobweaver/jobweaver/shared/apidb"

// stores are what cron uses of the API's database.
type stores struct {
	*apidb.Store
}

func newStores(db *apidb.Store) stores {
	return stores{
		Store: db,
	}
}
