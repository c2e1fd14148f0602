package apidb

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// toldAge is how old what workers have told of their job types may be: their beats come every 3 s anyway.
const toldAge = 2 * time.Second

// ToldType is a job type as the live workers tell of it that take more.
type ToldType struct {
	Workers int
	Queues  []string          // of these workers, by name
	Schemas []json.RawMessage // each once, that of most workers first; nil: that of those that tell none
}

// ToldTypes gives what workers tell, by name of the job type. It may be a little old.
func (s *Store) ToldTypes(ctx context.Context) (map[string]ToldType, error) {
	return s.told.Get(ctx, toldAge, func(ctx context.Context) (map[string]ToldType, error) {
		workers, err := s.Workers(ctx, Everyone)
		if err != nil {
			return nil, err
		}
		return toldBy(workers), nil
	})
}

func toldBy(workers []Worker) map[string]ToldType {
	types := map[string]ToldType{}
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
