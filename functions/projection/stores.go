package projection

import (
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/auditstore"
	"github.com/jobweaver/jobweaver/shared/apidb/callbackstore"
	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/apidb/rejectedstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/apidb/typestore"
	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
)

// stores has the parts of the API's database that projection uses.
type stores struct {
	*apidb.Store
	statuses  *statusstore.Store
	controls  *controlstore.Store
	rejected  *rejectedstore.Store
	stats     *statstore.Store
	callbacks *callbackstore.Store
	logs      *logstore.Store
	workers   *workerstore.Store
	auditLog  *auditstore.Store
	types     *typestore.Store
	waits     *waitstore.Store
}

func newStores(db *apidb.Store) stores {
	return stores{
		Store:     db,
		statuses:  statusstore.New(db),
		controls:  controlstore.New(db),
		rejected:  rejectedstore.New(db),
		stats:     statstore.New(db),
		callbacks: callbackstore.New(db),
		logs:      logstore.New(db),
		workers:   workerstore.New(db),
		auditLog:  auditstore.New(db),
		types:     typestore.New(db),
		waits:     waitstore.New(db),
	}
}
