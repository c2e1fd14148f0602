// Package typestore keeps the job types that workers have run or described.
//
// Why: docs/decisions/workers.md#job-types-are-learned-from-workers
package typestore

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

const (
	// MostOfOwner is about how many types are kept for an owner. It bounds what a worker that makes up names can store.
	MostOfOwner = 1_000

	mostListed  = 5_000           // of all owners
	mostFound   = 1_000           // results of Find that are cached
	mostWorkers = 1_000           // whose lists Learn remembers
	foundAge    = 2 * time.Second // how old they may be
)

// Type is a learned job type.
type Type struct {
	OwnerID string // empty: its workers run the jobs of all owners
	Name    string
	apibody.JobType
}

// Store is the table of learned job types.
type Store struct {
	db    *apidb.Store
	q     *gen.Queries
	found *lru.Cache[key, found]

	learned *lru.Cache[string, digest] // of the list of each worker, by its id
}

type key struct{ OwnerID, Name string }

type found struct {
	types []Type
	at    time.Time
}

// New returns the store on an api database.
func New(db *apidb.Store) *Store {
	return &Store{
		db: db, q: db.Queries(), found: newCache[key, found](mostFound), learned: newCache[string, digest](mostWorkers),
	}
}

func newCache[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, err := lru.New[K, V](size)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return cache
}

// ErrFull refuses a further type of an owner.
var ErrFull error = apierror.New(apierror.InvalidStateTransition,
	"%d job types of this owner are known already: delete one that no worker runs any more", MostOfOwner)

// Put stores the definition of a type, in place of the one before.
func (s *Store) Put(ctx context.Context, entry *apidb.Audit, t Type) error {
	definition, err := json.Marshal(t.JobType)
	if err != nil {
		return fmt.Errorf("write a job type: %w", err)
	}
	known, err := s.q.JobTypesNamed(ctx, gen.JobTypesNamedParams{OwnerIDs: []string{t.OwnerID}, Name: t.Name})
	if err == nil && len(known) > 0 && string(known[0].Definition) == string(definition) {
		return nil // as at each start of a worker
	}
	defer s.forget(t.OwnerID, t.Name) // also after an error: the commit may have succeeded
	err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		entry.SetSubject(t.OwnerID, "job-type/"+t.Name)
		n, err := q.JobTypesLearn(ctx, gen.JobTypesLearnParams{
			OwnerIDs: []string{t.OwnerID}, Names: []string{t.Name}, Definitions: []json.RawMessage{definition},
			Most: MostOfOwner,
		})
		if err != nil || n > 0 {
			return err
		}
		// The owner has too many, or another worker has stored the same since the read above.
		stored, err := q.JobTypesNamed(ctx, gen.JobTypesNamedParams{OwnerIDs: []string{t.OwnerID}, Name: t.Name})
		if err == nil && len(stored) == 0 {
			return ErrFull
		}
		return err
	})
	return apidb.Classify("store job type "+t.Name, err)
}

// Learn stores the types that heartbeats name, once for each list of a worker. A type keeps the definition that it has
// where the worker sends none.
func (s *Store) Learn(ctx context.Context, heartbeats []workerstore.Heartbeat) error {
	p := gen.JobTypesLearnParams{Most: MostOfOwner}
	lists, known := map[string]digest{}, map[key]bool{}
	for i := range heartbeats {
		types := typesOf(&heartbeats[i].Heartbeat)
		list := digestOf(types)
		if before, ok := s.learned.Get(heartbeats[i].WorkerID); ok && before == list || len(types) == 0 {
			continue
		}
		lists[heartbeats[i].WorkerID] = list
		for _, t := range types {
			if of := (key{t.OwnerID, t.Name}); !known[of] { // a statement cannot change a row twice
				known[of] = true
				p.OwnerIDs, p.Names = append(p.OwnerIDs, t.OwnerID), append(p.Names, t.Name)
				p.Definitions = append(p.Definitions, t.definition)
			}
		}
	}
	if len(p.Names) == 0 {
		return nil
	}
	if _, err := s.q.JobTypesLearn(ctx, p); err != nil {
		return apidb.Classify("learn job types", err)
	}
	for worker, list := range lists {
		s.learned.Add(worker, list)
	}
	return nil
}

// taught is a type in a heartbeat.
type taught struct {
	key
	definition json.RawMessage
}

type digest [sha256.Size]byte

func digestOf(types []taught) (d digest) {
	h := sha256.New()
	for _, t := range types {
		_, _ = fmt.Fprintf(h, "%q %q %s\n", t.OwnerID, t.Name, t.definition)
	}
	h.Sum(d[:0])
	return d
}

// typesOf returns what a worker runs: for a function pull what its pull workers ask for, by owner.
func typesOf(h *jobevent.Heartbeat) (types []taught) {
	if h.Stopping {
		return nil
	}
	for _, d := range h.Demands {
		for _, name := range d.JobTypes {
			types = append(types, taught{key: key{d.OwnerID, name}}) // the owner is empty where they run those of all
		}
	}
	if h.Demands != nil {
		return types
	}
	for _, t := range h.JobTypes {
		if slices.Contains(jobspec.Builtin(), t.Name) {
			continue
		}
		one := taught{key: key{"", t.Name}}
		if definition, err := json.Marshal(apibody.JobType{Schema: t.Schema}); err == nil && t.Schema != nil {
			one.definition = definition
		}
		types = append(types, one)
	}
	return types
}

// Find returns the types of a name that an owner may use: its own, and that of all owners. The result may be foundAge
// old, unless it is empty and fresh is set.
func (s *Store) Find(ctx context.Context, owner, name string, fresh bool) ([]Type, error) {
	of := key{owner, name}
	if held, ok := s.found.Get(of); ok && time.Since(held.at) < foundAge && (len(held.types) > 0 || !fresh) {
		return held.types, nil
	}
	at := time.Now()
	rows, err := s.q.JobTypesNamed(ctx, gen.JobTypesNamedParams{OwnerIDs: visible(owner), Name: name})
	if err != nil {
		return nil, apidb.Classify("find job type "+name, err)
	}
	types := make([]Type, 0, len(rows))
	for _, row := range rows {
		types = append(types, newType(row.OwnerID, name, row.Definition))
	}
	s.found.Add(of, found{types, at})
	return types, nil
}

// List returns the types that an owner may use, by name; of a name its own comes before that of all owners.
func (s *Store) List(ctx context.Context, owner apidb.Owner) ([]Type, error) {
	rows, err := s.q.JobTypesOf(ctx, gen.JobTypesOfParams{
		Everyone: owner.IsEveryone(), OwnerIDs: visible(owner.ID()), Most: mostListed,
	})
	types := make([]Type, 0, len(rows))
	for _, row := range rows {
		types = append(types, newType(row.OwnerID, row.Name, row.Definition))
	}
	return types, apidb.Classify("list job types", err)
}

// Forget deletes a type of an owner. A worker that runs it teaches it again.
func (s *Store) Forget(ctx context.Context, entry *apidb.Audit, owner, name string) (is bool, err error) {
	defer s.forget(owner, name)
	err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		entry.SetSubject(owner, "job-type/"+name)
		n, err := q.JobTypeForget(ctx, gen.JobTypeForgetParams{OwnerID: owner, Name: name})
		is = n > 0
		return err
	})
	return is, apidb.Classify("forget job type "+name, err)
}

// forget drops what is cached of a type; one of all owners is cached for each owner.
func (s *Store) forget(owner, name string) {
	if owner == "" {
		s.found.Purge()
	}
	s.found.Remove(key{owner, name})
}

func visible(owner string) []string { return slices.Compact([]string{owner, ""}) }

// newType reads a row. A definition that cannot be read, which a newer version may have written, is none.
func newType(owner, name string, definition json.RawMessage) Type {
	t := Type{OwnerID: owner, Name: name}
	_ = json.Unmarshal(definition, &t.JobType)
	return t
}
