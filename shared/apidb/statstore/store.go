// Package statstore counts jobs for the statistics.
//
// Why jobs are counted when they end: docs/decisions/api.md#statistics-are-counted-when-a-job-ends
package statstore

import (
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/readcache"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Store is safe for concurrent use. Its errors are classified as those of apidb.Store are.
type Store struct {
	db      *apidb.Store
	q       *gen.Queries
	health  readcache.Cache[Health]
	stats   readcache.Caches[apidb.Owner, statsRead]
	older   readcache.Caches[apidb.Owner, olderTallies]
	counted readcache.Cache[telemetry.JobCounts]
	keys    readcache.Cache[keyed]
	owners  readcache.Cache[[]string]

	failures readcache.Caches[apidb.Owner, FailureGroups]
}

// New makes the store on a database.
func New(db *apidb.Store) *Store { return &Store{db: db, q: db.Queries()} }
