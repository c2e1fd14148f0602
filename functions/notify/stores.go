package notify

import "github.com/jobweaver/jobweaver/shared/apidb"

// stores are what notify uses of the API's database.
type stores struct {
	*apidb.Store
}

func newStores(db *apidb.Store) stores {
	return stores{
		Store: db,
	}
}
