// Package commandstore keeps commands until a status of their job answers them.
package commandstore

import (
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

// Store is safe for concurrent use. Its errors are classified as those of apidb.Store are.
type Store struct {
	db    *apidb.Store
	q     *gen.Queries
	match func(version int64) bool // nil: of any version
}

// New makes the store on a database.
func New(db *apidb.Store) *Store { return &Store{db: db, q: db.Queries()} }

// If returns a store that keeps commands only for a job whose version matches, and else returns ErrNotRead; nil: for
// any job.
func (s *Store) If(match func(version int64) bool) *Store {
	return &Store{db: s.db, q: s.q, match: match}
}
