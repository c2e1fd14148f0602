package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
	"github.com/jobweaver/jobweaver/shared/client"
)

// batchMade is a batch that was asked for. Its end submits next, and would submit other if it had ended otherwise.
type batchMade struct {
	id          string // empty: unanswered
	members     []*order
	fails       bool
	next, other *order
}

// makeBatch submits a closed batch. In some, a job fails.
func (l *load) makeBatch(rnd *rand.Rand) {
	made := &batchMade{
		fails: rnd.IntN(3) == 0, next: l.newOrder(rnd, nextShape, nil), other: l.newOrder(rnd, nextShape, nil),
	}
	var jobs []any
	for range 1 + rnd.IntN(6) {
		made.members = append(made.members, l.newOrder(rnd, memberShape, nil))
	}
	if made.fails {
		made.members = append(made.members, l.newOrder(rnd, badMember, nil))
	}
	for _, o := range made.members {
		jobs = append(jobs, o.unkeyed())
	}
	request := map[string]any{
		"idempotencyKey": made.next.key, "closed": true, "jobs": jobs,
		"onComplete": made.next.unkeyed(), "onFailure": made.other.unkeyed(),
	}
	if made.fails {
		request["onComplete"], request["onFailure"] = request["onFailure"], request["onComplete"]
	}
	body, err := json.Marshal(request)
	if err != nil {
		panic(err) // it was JSON
	}
	var answer struct{ BatchID string }
	l.post("/api/batches", body, &answer)
	l.mu.Lock()
	defer l.mu.Unlock()
	made.id = answer.BatchID
	l.batches = append(l.batches, made)
}

// listBatches returns the batches by id, those in a status or all.
func listBatches(ctx context.Context, l *load, status string) (map[string]client.Batch, error) {
	all := map[string]client.Batch{}
	for batch, err := range l.gateways[0].Batches.List(ctx, client.BatchFilter{Status: status}) {
		if err != nil {
			return nil, fmt.Errorf("list batches: %w", err)
		}
		all[batch.BatchID] = *batch
	}
	return all, nil
}

// checkBatches: each batch has ended with all of its jobs, and then exactly one job has followed it.
func (h *history) checkBatches(v *verdict) {
	keys := map[string]*job{}
	for _, j := range h.jobs {
		keys[j.key()] = j
	}
	for _, made := range h.made {
		if made.id == "" {
			continue
		}
		want := completed
		if made.fails {
			want = failed
		}
		b := h.batches[made.id]
		if b.Status != want || b.FinishedAt == nil || b.Total != int64(len(made.members)) {
			v.find("batches", "", "%s of %d jobs is %+v, want %s", made.id, len(made.members), b, want)
		}
		next := h.jobs[b.FollowUpJobID]
		if next == nil || next.key() != made.next.key || keys[made.other.key] != nil {
			v.find("batches", b.FollowUpJobID, "it follows batch %s, which is to be followed by %s and not by %s",
				made.id, made.next.key, made.other.key)
			continue
		}
		for _, o := range made.members {
			if j := keys[o.key]; j == nil {
				v.find("batches", "", "%s of batch %s is not there", o.key, made.id)
			} else if runs := h.runs[next.JobID]; len(runs) > 0 && !h.doneBy(j.JobID, runs[0].start) {
				v.find("batches", next.JobID, "it began at %s, and %s of its batch had not ended", clockTime(runs[0].start), o.key)
			}
		}
	}
}

// doneBy reports whether an attempt of a job had ended by itself at an instant.
func (h *history) doneBy(id string, at time.Time) bool {
	for _, r := range h.runs[id] {
		if (r.how == installation.HowOK || r.how == installation.HowFailed) && !r.end.After(at) {
			return true
		}
	}
	return false
}
