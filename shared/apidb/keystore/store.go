// Package keystore keeps API keys.
//
// Why keys are checked from memory: docs/decisions/security.md#keys-are-checked-from-memory-at-most-ten-seconds-old
package keystore

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
