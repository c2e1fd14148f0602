package bulk

import (
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
)

// stores has the parts of the API's database that bulk uses.
type stores struct {
	*apidb.Store
	operations *operationstore.Store
}

func newStores(db *apidb.Store) stores {
	jobs := jobstore.New(db, controlstore.New(db))
	return stores{
		Store:      db,
		operations: operationstore.New(db, jobs),
	}
}
