package gateway

import (
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/alertstore"
	"github.com/jobweaver/jobweaver/shared/apidb/auditstore"
	"github.com/jobweaver/jobweaver/shared/apidb/batchstore"
	"github.com/jobweaver/jobweaver/shared/apidb/callbackstore"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/apidb/deliverystore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/apidb/queuestore"
	"github.com/jobweaver/jobweaver/shared/apidb/rejectedstore"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/apidb/typestore"
	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
)

// stores are the parts of the api database that the gateway uses.
type stores struct {
	*apidb.Store
	jobs       *jobstore.Store
	commands   *commandstore.Store
	operations *operationstore.Store
	controls   *controlstore.Store
	keys       *keystore.Store
	rejected   *rejectedstore.Store
	stats      *statstore.Store
	schedules  *schedulestore.Store
	deliveries *deliverystore.Store
	callbacks  *callbackstore.Store
	logs       *logstore.Store
	workers    *workerstore.Store
	auditLog   *auditstore.Store
	batches    *batchstore.Store
	queues     *queuestore.Store
	types      *typestore.Store
	waits      *waitstore.Store
	alerts     *alertstore.Store
}

func newStores(db *apidb.Store) stores {
	controls := controlstore.New(db)
	jobs := jobstore.New(db, controls)
	operations := operationstore.New(db, jobs)
	return stores{
		Store:      db,
		jobs:       jobs,
		commands:   commandstore.New(db),
		operations: operations,
		controls:   controls,
		keys:       keystore.New(db),
		rejected:   rejectedstore.New(db),
		stats:      statstore.New(db),
		schedules:  schedulestore.New(db, jobs),
		deliveries: deliverystore.New(db),
		callbacks:  callbackstore.New(db),
		logs:       logstore.New(db),
		workers:    workerstore.New(db),
		auditLog:   auditstore.New(db),
		batches:    batchstore.New(db, jobs, operations),
		queues:     queuestore.New(db),
		types:      typestore.New(db),
		waits:      waitstore.New(db),
		alerts:     alertstore.New(db, jobs),
	}
}
