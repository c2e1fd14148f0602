package apidb

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func TestTheOldestOfOneMillisecondIsTheLeastID(t *testing.T) {
	t.Parallel()
	first := uuid.MustParse("01a20061-ca11-75a5-8759-82d0be0b9747")
	second := uuid.MustParse("01a20061-ca11-7a2d-bdcd-6ae23f9b3c65")
	for _, order := range [][]uuid.UUID{{first, second}, {second, first}} {
		b := newStatsBuilder(time.Now())
		for _, id := range order {
			b.addLive(&liveCount{Status: jobstate.Pending, N: 1, Oldest: id})
		}
		if *b.Oldest != first {
			t.Errorf("of %v the oldest is %s", order, b.Oldest)
		}
	}
}
