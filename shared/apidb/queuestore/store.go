// Package queuestore keeps the queues that are created and removed through the API. Those of the setting QUEUES are not
// among them.
//
// Why created queues are controls: docs/decisions/events.md#created-queues-are-controls-of-the-scheduler
package queuestore

import (
	"context"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/readcache"
)

// Store is safe for concurrent use. Its errors are classified as those of apidb.Store are.
type Store struct {
	db *apidb.Store
	q  *gen.Queries

	known readcache.Cache[Known]
}

// New makes the store on a database.
func New(db *apidb.Store) *Store { return &Store{db: db, q: db.Queries()} }

// State is the state of a queue.
type State string

// The states. A removed queue is remembered, but shown to no one.
const (
	Active   State = "ACTIVE"
	Removing State = "REMOVING" // it takes no new jobs, and runs those that it has
	removed  State = "REMOVED"
)

// Queue is a created queue.
type Queue struct {
	Name       string
	Workers    string // the function that serves it: one of jobevent's
	State      State
	CreatedAt  time.Time
	CreatedBy  string
	RemovingAt *time.Time
}

func newQueue(row gen.Queue) Queue {
	return Queue{
		Name: row.Name, Workers: row.Workers, State: State(row.State), CreatedAt: row.CreatedAt, CreatedBy: row.CreatedBy,
		RemovingAt: row.RemovingAt,
	}
}

// Known are the created queues by name.
type Known map[string]Queue

// Active returns the names of the queues that take jobs.
func (k Known) Active() (names []string) {
	for name, queue := range k {
		if queue.State == Active {
			names = append(names, name)
		}
	}
	return names
}

// Created answers jobspec.Rules, by this list alone.
func (k Known) Created(queue string) (active []string, removing bool, err error) {
	return k.Active(), k[queue].State == Removing, nil
}

const (
	// KnownAge is how old the list may be by which a job is accepted. A queue ends only long after its removal began, so
	// that no job is accepted for a queue that has ended.
	KnownAge = 3 * time.Second
	// UnknownAge is how old it may be if it lacks a name. Names that do not exist read the list no more often.
	UnknownAge = time.Second
)

// Known returns the created queues as they were at most age ago. Changes by this process show at once.
func (s *Store) Known(ctx context.Context, age time.Duration) (Known, error) {
	return s.known.Get(ctx, age, func(ctx context.Context) (Known, error) {
		rows, err := s.q.QueuesAll(ctx)
		known := make(Known, len(rows))
		for _, row := range rows {
			known[row.Name] = newQueue(row)
		}
		return known, apidb.Classify("list created queues", err)
	})
}

// KnownWith is Known for a question about a name: it reads again if the list lacks the name.
func (s *Store) KnownWith(ctx context.Context, name string) (Known, error) {
	known, err := s.Known(ctx, KnownAge)
	if _, is := known[name]; is || err != nil {
		return known, err
	}
	return s.Known(ctx, UnknownAge)
}

// Forget drops the cached list, because another process has changed it.
func (s *Store) Forget() { s.known.Forget() }
