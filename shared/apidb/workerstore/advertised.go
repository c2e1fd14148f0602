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

// AdvertisedType is a job type as live workers advertise it that take more attempts.
type AdvertisedType struct {
	Workers int
	Queues  []string          // of these workers, by name
	Schemas []json.RawMessage // each once, that of most workers first; nil: that of workers that advertise none
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

func advertisedBy(workers []Worker) map[string]AdvertisedType {
	types := map[string]AdvertisedType{}
	tellers := map[string]map[string]int{} // of each schema of each type
	for _, w := range workers {
		if !w.Live || w.Stopping {
			continue
		}
		for _, told := range w.JobTypes {
			t := types[told.Name]
			t.Workers++
			t.Queues = append(t.Queues, w.Queues...)
			types[told.Name] = t
			if tellers[told.Name] == nil {
				tellers[told.Name] = map[string]int{}
			}
			tellers[told.Name][string(told.Schema)]++
		}
	}
	for name, t := range types {
		slices.Sort(t.Queues)
		t.Queues = slices.Compact(t.Queues)
		count := tellers[name]
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
