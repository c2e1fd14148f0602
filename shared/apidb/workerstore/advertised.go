package workerstore

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// advertisedAge is how old the advertised job types may be: heartbeats come every 3 s anyway.
const advertisedAge = 2 * time.Second

// AdvertisedType is a job type that live workers advertise, other than stopping ones.
type AdvertisedType struct {
	Workers int
	Queues  []string          // of these workers, sorted
	Schemas []json.RawMessage // distinct, the one of most workers first; nil: no schema is advertised

	onlyOf map[string]bool // owners whose pull workers ask for it; nil: it is everyone's
}

// IsShownTo reports whether an owner may know of the type: not if only pull workers of other owners ask for it.
func (t *AdvertisedType) IsShownTo(owner apidb.Owner) bool {
	return owner.IsEveryone() || t.onlyOf == nil || t.onlyOf[owner.ID()]
}

// AdvertisedTypes returns the job types that workers advertise, by name. They may be up to advertisedAge old.
func (s *Store) AdvertisedTypes(ctx context.Context) (map[string]AdvertisedType, error) {
	return s.advertised.Get(ctx, advertisedAge, func(ctx context.Context) (map[string]AdvertisedType, error) {
		workers, err := s.List(ctx)
		if err != nil {
			return nil, err
		}
		return advertisedBy(workers), nil
	})
}

// runTypes are the jobs that the live workers of a queue run.
type runTypes struct {
	any   bool
	named map[string]bool     // types of all owners
	owned map[string][]string // owners whose pull workers ask for a type
}

// LacksWorkers reports whether the live workers of a queue all run other jobs than those of a type and an owner; nil:
// of any owner. It returns false for a queue without a live worker. The answer may be up to advertisedAge old.
func (s *Store) LacksWorkers(ctx context.Context, queue, jobType string, owner *string) (bool, error) {
	byQueue, err := s.run.Get(ctx, advertisedAge, func(ctx context.Context) (map[string]runTypes, error) {
		workers, err := s.List(ctx)
		if err != nil {
			return nil, err
		}
		return runBy(workers), nil
	})
	run, isServed := byQueue[queue]
	return isServed && !run.runs(jobType, owner), err
}

func runBy(workers []Worker) map[string]runTypes {
	byQueue := map[string]runTypes{}
	for _, w := range workers {
		if !w.Live || w.Stopping || w.Draining() {
			continue
		}
		for _, queue := range w.Queues {
			run := byQueue[queue]
			if run.named == nil {
				run.named, run.owned = map[string]bool{}, map[string][]string{}
			}
			run.add(queue, w.Heartbeat)
			byQueue[queue] = run
		}
	}
	return byQueue
}

func (r *runTypes) runs(jobType string, owner *string) bool {
	owners := r.owned[jobType]
	return r.any || r.named[jobType] || len(owners) > 0 && (owner == nil || slices.Contains(owners, *owner))
}

func (r *runTypes) add(queue string, h jobevent.Heartbeat) {
	if h.Demands == nil {
		r.any = r.any || !h.OnlyTypes
		for _, t := range h.JobTypes {
			r.named[t.Name] = true
		}
	}
	for _, d := range h.Demands {
		if len(d.Queues) > 0 && !slices.Contains(d.Queues, queue) {
			continue
		}
		for _, name := range d.JobTypes {
			if d.Everyone {
				r.named[name] = true
			} else {
				r.owned[name] = append(r.owned[name], d.OwnerID)
			}
		}
	}
}

// ownersOf returns the owners for whom alone the worker's pull workers ask for a type; nil: it runs that of everyone.
func (w *Worker) ownersOf(jobType string) map[string]bool {
	owners := map[string]bool{}
	for _, d := range w.Demands {
		if slices.Contains(d.JobTypes, jobType) {
			if d.Everyone {
				return nil
			}
			owners[d.OwnerID] = true
		}
	}
	if len(owners) == 0 {
		return nil
	}
	return owners
}

func advertisedBy(workers []Worker) map[string]AdvertisedType {
	types := map[string]AdvertisedType{}
	advertisers := map[string]map[string]int{} // by type and schema
	for _, w := range workers {
		if !w.Live || w.Stopping {
			continue
		}
		for _, advertised := range w.JobTypes {
			t, known := types[advertised.Name]
			if owners := w.ownersOf(advertised.Name); owners == nil || known && t.onlyOf == nil {
				t.onlyOf = nil
			} else {
				maps.Copy(owners, t.onlyOf)
				t.onlyOf = owners
			}
			t.Workers++
			t.Queues = append(t.Queues, w.Queues...)
			types[advertised.Name] = t
			if advertisers[advertised.Name] == nil {
				advertisers[advertised.Name] = map[string]int{}
			}
			advertisers[advertised.Name][string(advertised.Schema)]++
		}
	}
	for name, t := range types {
		slices.Sort(t.Queues)
		t.Queues = slices.Compact(t.Queues)
		count := advertisers[name]
		for _, schema := range slices.SortedFunc(maps.Keys(count), func(a, b string) int {
			return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(b, a))
		}) {
			if schema == "" || schema == "null" {
				t.Schemas = append(t.Schemas, nil)
				continue
			}
			t.Schemas = append(t.Schemas, json.RawMessage(schema))
		}
		types[name] = t
	}
	return types
}
