package projection_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func TestATickCountsForTheStatistics(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.accept()
	id := uuid.MustParse(h.accept().Subject())
	h.handle(event(t, jobevent.TypeStatus, "outcome", jobevent.StatusID(id, 1), id, jobevent.Status{
		JobID: id, Version: 1, Status: string(jobstate.Completed), History: []jobevent.Transition{},
	}))
	h.pass()
	got, err := h.store.Stats.Get(t.Context(), apidb.Everyone, "", "")
	if err != nil || got.AsOf == nil || got.Total[jobstate.Pending] != 1 || got.Total[jobstate.Completed] != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	var entries, sums int
	if err := h.conn.QueryRow(t.Context(), "select (select count(*) from tally_entries), (select count(*) from tallies where everyone)").
		Scan(&entries, &sums); err != nil || entries != 0 || sums != 1 {
		t.Errorf("%d entries, %d sums, %v", entries, sums, err)
	}
}
