package gateway

import (
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apidb/rejectedstore"
)

// stores are what the gateway uses of the API's database.
type stores struct {
	*apidb.Store
	keys     *keystore.Store
	rejected *rejectedstore.Store
}

func newStores(db *apidb.Store) stores {
	return stores{
		Store:    db,
		keys:     keystore.New(db),
		rejected: rejectedstore.New(db),
	}
}
