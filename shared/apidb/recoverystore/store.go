// Package recoverystore compares and corrects the database after it was restored from a backup.
//
// Why: docs/decisions/databases.md#a-command-reconciles-databases-restored-to-different-moments
package recoverystore

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
