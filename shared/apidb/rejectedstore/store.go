// Package rejectedstore keeps the rejected records.
//
// Why a redrive is for a week, once: docs/decisions/events.md#rejected-records-can-be-redriven-once-for-a-week
package rejectedstore

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
