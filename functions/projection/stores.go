package projection

import (
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/rejectedstore"
)

// stores are what projection uses of the API's database.
type stores struct {
	*apidb.Store
	rejected *rejectedstore.Store
}

func newStores(db *apidb.Store) stores {
	return stores{
		Store:    db,
		rejected: rejectedstore.New(db),
	}
}
