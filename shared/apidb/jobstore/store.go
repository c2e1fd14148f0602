// Package jobstore accepts jobs, and reads and lists them.
package jobstore

import (
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
)

// Store is safe for concurrent use. Its errors are classified as those of apidb.Store are.
type Store struct {
	db *apidb.Store
	q  *gen.Queries

	controls *controlstore.Store
	workers  *workerstore.Store // only for the reason why a job waits
	accepts  accepts
}

// New makes the store on a database.
func New(db *apidb.Store, controls *controlstore.Store) *Store {
	return &Store{db: db, q: db.Queries(), controls: controls, workers: workerstore.New(db)}
}
