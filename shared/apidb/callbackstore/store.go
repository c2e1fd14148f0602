// Package callbackstore keeps what outside systems report about attempts that wait for them.
//
// Why the API decides about deadlines: docs/decisions/workers.md#the-api-decides-whether-a-callback-met-its-deadline
package callbackstore

import (
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

// Store is safe for concurrent use. Its errors are classified as those of apidb.Store are.
type Store struct {
	db *apidb.Store
	q  *gen.Queries
}

// New makes the store on a database.
func New(db *apidb.Store) *Store { return &Store{db: db, q: db.Queries()} }
