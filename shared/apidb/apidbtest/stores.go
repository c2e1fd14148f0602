package apidbtest

import (
	"testing"

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
	"github.com/jobweaver/jobweaver/shared/apidb/recoverystore"
	"github.com/jobweaver/jobweaver/shared/apidb/rejectedstore"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
)

// Stores are all stores of one jobweaver_api.
type Stores struct {
	*apidb.Store
	Jobs       *jobstore.Store
	Commands   *commandstore.Store
	Operations *operationstore.Store
	Controls   *controlstore.Store
	Statuses   *statusstore.Store
	Recovery   *recoverystore.Store
	Keys       *keystore.Store
	Rejected   *rejectedstore.Store
	Stats      *statstore.Store
	Schedules  *schedulestore.Store
	Deliveries *deliverystore.Store
	Callbacks  *callbackstore.Store
	Logs       *logstore.Store
	Workers    *workerstore.Store
	AuditLog   *auditstore.Store
	Batches    *batchstore.Store
	Waits      *waitstore.Store
	Alerts     *alertstore.Store
}

// Of makes the stores on an open database.
func Of(db *apidb.Store) *Stores {
	controls := controlstore.New(db)
	jobs := jobstore.New(db, controls)
	operations := operationstore.New(db, jobs)
	return &Stores{
		Store:      db,
		Jobs:       jobs,
		Commands:   commandstore.New(db),
		Operations: operations,
		Controls:   controls,
		Statuses:   statusstore.New(db),
		Recovery:   recoverystore.New(db),
		Keys:       keystore.New(db),
		Rejected:   rejectedstore.New(db),
		Stats:      statstore.New(db),
		Schedules:  schedulestore.New(db, jobs),
		Deliveries: deliverystore.New(db),
		Callbacks:  callbackstore.New(db),
		Logs:       logstore.New(db),
		Workers:    workerstore.New(db),
		AuditLog:   auditstore.New(db),
		Batches:    batchstore.New(db, jobs, operations),
		Waits:      waitstore.New(db),
		Alerts:     alertstore.New(db, jobs),
	}
}

// Open opens the stores of the database at url until the test ends.
func Open(t testing.TB, url string) *Stores {
	t.Helper()
	db, err := apidb.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return Of(db)
}
