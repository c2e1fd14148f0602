package workerstore

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb"
)

// advertisedAge is how old the advertised job types may be: heartbeats come every 3 s anyway.
const advertisedAge = 2 * time.Second

// AdvertisedType is a job type that live workers advertise, other than stopping ones.
type AdvertisedType struct {
	Workers int
	Queues  []string          // of these workers, sorted
	Schemas []json.RawMessage // distinct, the one of most workers first; nil: no schema is advertised
}

// AdvertisedTypes returns the job types that workers advertise, by name. They may be up to advertisedAge old.
func (s *Store) AdvertisedTypes(ctx context.Context) (map[string]AdvertisedType, error) {
	return s.advertised.Get(ctx, advertisedAge, func(ctx context.Context) (map[string]AdvertisedType, error) {
		workers, err := s.List(ctx, apidb.Everyone)
		if err != nil {
			return nil, err
		}
		return advertisedBy(workers), nil
	})
}

// runTypes are the job types that the live workers of a queue run.
type runTypes struct {
	any   bool
	named map[string]bool
}

// LacksWorkers reports whether the live workers of a queue all run other job types than this one. It does not say so of
// a queue without a live worker. The answer may be up to advertisedAge old.
func (s *Store) LacksWorkers(ctx context.Context, queue, jobType string) (bool, error) {
	byQueue, err := s.run.Get(ctx, advertisedAge, func(ctx context.Context) (map[string]runTypes, error) {
		workers, err := s.allWorkers(ctx)
		if err != nil {
			return nil, err
		}
		return runBy(workers), nil
	})
	run, isServed := byQueue[queue]
	return isServed && !run.any && !run.named[jobType], err
}

func runBy(workers []Worker) map[string]runTypes {
	byQueue := map[string]runTypes{}
	for _, w := range workers {
		if !w.Live || w.Stopping || w.Draining() {
			continue
		}
		for _, queue := range w.Queues {
			run := byQueue[queue]
			run.any = run.any || !w.OnlyTypes
			if run.named == nil {
				run.named = map[string]bool{}
			}
			for _, t := range w.JobTypes {
				run.named[t.Name] = true
			}
			byQueue[queue] = run
		}
	}
	return byQueue
}

func advertisedBy(workers []Worker) map[string]AdvertisedType {
	types := map[string]AdvertisedType{}
	advertisers := map[string]map[string]int{} // by type and schema
	for _, w := range workers {
		if !w.Live || w.Stopping {
			continue
		}
		for _, advertised := range w.JobTypes {
			t := types[advertised.Name]
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
