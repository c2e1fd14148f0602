package cron

import (
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/alertstore"
	"github.com/jobweaver/jobweaver/shared/apidb/batchstore"
	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/apidb/queuestore"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
)

// stores has the parts of the API's database that cron uses.
type stores struct {
	*apidb.Store
	jobs      *jobstore.Store
	schedules *schedulestore.Store
	batches   *batchstore.Store
	queues    *queuestore.Store
	waits     *waitstore.Store
	alerts    *alertstore.Store
}

func newStores(db *apidb.Store) stores {
	jobs := jobstore.New(db, controlstore.New(db))
	return stores{
		Store:     db,
		jobs:      jobs,
		schedules: schedulestore.New(db, jobs),
		batches:   batchstore.New(db, jobs, operationstore.New(db, jobs)),
		queues:    queuestore.New(db),
		waits:     waitstore.New(db),
		alerts:    alertstore.New(db, jobs),
	}
}
