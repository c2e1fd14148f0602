package funchost

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func TestAFailingBatchIsGivenBackUnlessTheProcessStops(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		stopping bool
		took     time.Duration
	}{
		{"running: others may wait for the partitions", false, patience},
		{"stopping: as long as the grace lasts", true, time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newClock(Function{Handle: func(context.Context, []jobevent.Item) ([]jobevent.Item, error) {
					return nil, errors.New("store away")
				}}, nil)
				h.stopping.Store(tt.stopping)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				_, err := h.settlePatiently(ctx, records{
					items: []jobevent.Item{ofJob(t, jobevent.TypeDeadLettered, "1", uuid.New())},
					from:  []*sarama.ConsumerMessage{{}},
				})
				took := time.Since(began)
				if err == nil || neverBetter(err) || took < tt.took || took > tt.took+lastRetry {
					t.Errorf("ended with %v after %s", err, took)
				}
			})
		})
	}
}
