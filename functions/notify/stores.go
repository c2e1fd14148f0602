package notify

import (
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/deliverystore"
)

// stores has the parts of the API's database that notify uses.
type stores struct {
	*apidb.Store
	deliveries *deliverystore.Store
}

func newStores(db *apidb.Store) stores {
	return stores{
		Store:      db,
		deliveries: deliverystore.New(db),
	}
}
