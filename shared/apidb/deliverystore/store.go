// Package deliverystore keeps the deliveries of jobs' ends to their callback URLs.
//
// Why the status inserts them: docs/decisions/security.md#deliveries-are-inserted-with-the-status-that-ends-a-job
package deliverystore

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
