package schedulerdb

import (
	"fmt"
	"testing"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// A history has the last hundred transitions of a job, whether they come one by one or many in a batch.
func TestAHistoryHasTheLastHundredTransitions(t *testing.T) {
	for _, batch := range []int{1, 7, 99, 120} {
		t.Run(fmt.Sprint("in batches of ", batch), func(t *testing.T) {
			h := newFixture(t)
			h.fillRoom()
			job := newJob()
			h.ingest(job)
			number := 0
			for range 2 {
				for end := number + 240/2; number < end; {
					var commands []jobevent.Command
					for range min(batch, end-number) {
						number++
						change := priorityOf(number % 10)
						commands = append(commands, jobevent.Command{
							JobID: job.JobID, Number: number, Command: jobevent.CommandChange, By: fmt.Sprint(number), Change: &change,
						})
					}
					h.must(h.Command(t.Context(), commands))
				}
				history := h.wantStatus(job, jobstate.Pending).History
				if len(history) != 100 {
					t.Fatalf("after %d changes the history has %d entries", number, len(history))
				}
				for i, entry := range history {
					if want := fmt.Sprint(number - 99 + i); entry.By != want {
						t.Fatalf("after %d changes entry %d is by %s, want %s", number, i, entry.By, want)
					}
				}
			}
		})
	}
}
