package runjob

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/runjob/offsets"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

func TestPullWorkersOfEveryoneGetTheAttemptsOfAllFairnessKeysInTurns(t *testing.T) {
	t.Parallel()
	var u unclaimed
	begin := time.Now()
	read := func(owner, key string, rank int) {
		u.add([]ordered{{
			delivered: delivered{Record: offsets.Record{Partition: &offsets.Partition{Queue: "pull"}}},
			run: jobevent.Run{
				JobID: uuid.New(), Attempt: 1, JobType: "RESIZE", OwnerID: owner, FairnessKey: key,
				Rank: begin.Add(time.Duration(rank) * time.Second),
			},
		}})
	}
	read("quiet", "", 100)
	read("noisy", "own", 101)
	everything := &Demand{Wants: func(Kind, workerdb.Key, int) bool { return true }}
	var order []string
	for i := range 5 {
		read("noisy", "", i) // they have waited longer, and come as pull workers have room
		for _, o := range u.take(1, everything) {
			order = append(order, fmt.Sprint(o.run.OwnerID, o.run.FairnessKey, o.run.Rank.Sub(begin).Seconds()))
		}
	}
	if want := []string{"quiet100", "noisyown101", "noisy0", "noisy1", "noisy2"}; !slices.Equal(order, want) {
		t.Errorf("they were taken as %v, want %v", order, want)
	}
}
