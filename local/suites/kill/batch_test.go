package kill

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

const (
	batchKey  = "of a batch"      // the tag of the jobs of batches
	followKey = "follows a batch" // the tag of the jobs that follow them
)

// batch creates a closed batch of a few jobs.
func (l *load) batch(ctx context.Context, rnd *rand.Rand) {
	witness := func(key string) map[string]any {
		return map[string]any{"jobType": "WITNESS", "tags": []string{key}, "payload": map[string]any{"key": key}}
	}
	jobs := make([]any, rnd.IntN(5))
	for i := range jobs {
		jobs[i] = witness(batchKey)
	}
	key := l.name("batch ")
	body, err := json.Marshal(map[string]any{
		"jobs": jobs, "closed": true, "idempotencyKey": key, "name": key, "onComplete": witness(followKey), "onFailure": witness(followKey),
	})
	if err != nil {
		panic(err) // it is JSON
	}
	if l.ask(ctx, true, "/api/batches", "application/json", body, nil) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.batches = append(l.batches, batchMade{key, len(jobs)})
	}
}

// batchMade is a batch that got its 201.
type batchMade struct {
	name string
	jobs int
}

// endBatches waits until each batch has ended, and the jobs that follow them.
func (h *fixture) endBatches(limit time.Duration) {
	h.t.Helper()
	err := within(h.t.Context(), limit, func(ctx context.Context) error {
		batches, err := batchesOf(ctx, h.api)
		for name, b := range batches {
			if b.FinishedAt == nil {
				return fmt.Errorf("%s is %s with %v", name, b.Status, b.Counts)
			}
		}
		return err
	})
	if err == nil {
		err = h.drain(h.t.Context(), time.Time{}, limit)
	}
	if err != nil {
		h.t.Error(err)
	}
}

// batchesOf returns all batches by name.
func batchesOf(ctx context.Context, api *client.Client) (map[string]client.Batch, error) {
	batches := map[string]client.Batch{}
	for b, err := range api.Batches.List(ctx, client.BatchFilter{}) {
		if err != nil {
			return nil, fmt.Errorf("list batches: %w", err)
		}
		batches[b.Name] = *b
	}
	return batches, nil
}

// takeBatches removes the jobs of batches, and those that follow them, from the evidence. Each batch has ended with all
// of its jobs, and exactly one job follows it.
func (e *evidence) takeBatches(ctx context.Context, api *client.Client) {
	batches, err := batchesOf(ctx, api)
	if err != nil {
		e.find("", "the batches cannot be read: %v", err)
	}
	for _, made := range e.load.batches {
		if b, found := batches[made.name]; !found || b.Total != int64(made.jobs) {
			e.find("", "%s was made with %d jobs, and is %+v", made.name, made.jobs, b)
		}
	}
	followed := map[string]bool{}
	for name, b := range batches {
		if b.FinishedAt == nil || b.FollowUpJobID == "" || followed[b.FollowUpJobID] || e.jobs[b.FollowUpJobID] == nil {
			e.find(b.FollowUpJobID, "follows %s, which is %+v", name, b)
		}
		followed[b.FollowUpJobID] = true
	}
	for id, job := range e.jobs {
		switch key := job.key(); {
		case key == followKey && !followed[id]:
			e.find(id, "follows a batch, and no batch names it")
			fallthrough
		case key == batchKey, key == followKey:
			if job.Status == completed && len(e.ran[id]) == 0 {
				e.find(id, "completed %s, and never ran", key)
			}
			delete(e.jobs, id)
			delete(e.ran, id)
		}
	}
}
