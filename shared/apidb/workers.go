package apidb

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Worker is a worker's latest beat.
type Worker struct {
	jobevent.Heartbeat
	SeenAt time.Time
	Live   bool // seen within the last 10 s
}

// Workers gives all that have been seen of late, by their ids.
func (s *Store) Workers(ctx context.Context) ([]Worker, error) {
	rows, err := s.q.WorkersAll(ctx)
	if err != nil {
		return nil, classify("list workers", err)
	}
	workers := make([]Worker, len(rows))
	for i, row := range rows {
		workers[i].SeenAt, workers[i].Live = row.SeenAt, row.Live
		if err := json.Unmarshal(row.Beat, &workers[i].Heartbeat); err != nil {
			return nil, fmt.Errorf("read beat of worker %s: %w", row.WorkerID, err)
		}
	}
	return workers, nil
}
