// Package schedulestore stores schedules, and makes jobs of their ticks.
package schedulestore

import (
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
)

// Store is safe for concurrent use. Its errors are classified as those of apidb.Store are.
type Store struct {
	db            *apidb.Store
	q             *gen.Queries
	jobs          *jobstore.Store
	held          heldSchedules
	pace          pace
	mostSchedules int
}

// New makes the store on a database.
func New(db *apidb.Store, jobs *jobstore.Store) *Store {
	return &Store{db: db, q: db.Queries(), jobs: jobs}
}
