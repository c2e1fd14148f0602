// Package operationstore stores operations, and works on them piece by piece.
//
// Why an operation is a walk: docs/decisions/api.md#an-operation-is-a-walk-with-a-cursor
package operationstore

import (
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
)

// Store is safe for concurrent use. Its errors are classified as those of apidb.Store are.
type Store struct {
	db *apidb.Store
	q  *gen.Queries

	jobs *jobstore.Store
	most int // unfinished operations of an owner; 0: any number
}

// New makes the store on a database.
func New(db *apidb.Store, jobs *jobstore.Store) *Store {
	return &Store{db: db, q: db.Queries(), jobs: jobs}
}
