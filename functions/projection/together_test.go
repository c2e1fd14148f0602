package projection_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// together returns statuses as they arrive in one event.
func together(t *testing.T, statuses ...jobevent.Item) []jobevent.Item {
	t.Helper()
	var items []jobevent.Item
	for _, it := range statuses {
		items = append(items, it.ForFunctions())
	}
	events, _ := jobevent.Pack(items)
	received, err := jobevent.Unpack(events[0])
	if err != nil || len(received) != len(statuses) {
		t.Fatal(received, err)
	}
	return received
}

func TestADeletionArrivesTogetherWithStatuses(t *testing.T) {
	t.Parallel()
	h := open(t)
	gone, ended := h.accept(), h.accept()
	deleted, err := jobevent.NewDeleted(jobevent.Meta{Function: "outcome", JobID: gone.JobID()}, 3)
	if err != nil {
		t.Fatal(err)
	}
	end := jobevent.End{Status: string(jobstate.Failed), At: time.Now(), Attempt: 2, ErrorCode: "<ü>"}
	jobevent.SetEnd(&deleted, end)
	received := together(t, status(t, ended.Subject(), 2, jobstate.Completed), deleted)
	read, err := jobevent.EndOf(received[1])
	if err != nil || read == nil || !read.At.Equal(end.At) || read.Status != end.Status || read.ErrorCode != end.ErrorCode {
		t.Errorf("the end is read as %+v, %v", read, err)
	}
	h.handle(received...)
	var left []uuid.UUID
	err = h.conn.QueryRow(t.Context(), "select array_agg(job_id) from jobs").Scan(&left)
	if err != nil || !slices.Equal(left, []uuid.UUID{ended.JobID()}) {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestAStatusIsStoredUnchangedHoweverItArrives(t *testing.T) {
	t.Parallel()
	h := open(t)
	var statuses []jobevent.Item
	for range 3 {
		statuses = append(statuses, status(t, h.accept().Subject(), 2, jobstate.Completed, func(s *jobevent.Status) {
			s.Attempt, s.Output = 1, json.RawMessage(`{"eventId": "<ü>", "n": 1e400}`)
			s.LastCommand = &jobevent.CommandResult{Number: 1, Command: jobevent.CommandCancel}
		}))
	}
	h.handle(statuses[0])
	h.handle(together(t, statuses[1:]...)...)
	for _, it := range statuses {
		var stored string
		err := h.conn.QueryRow(t.Context(), "select snapshot from jobs where job_id = $1", it.JobID()).Scan(&stored)
		if err != nil || stored != string(it.Data()) {
			t.Errorf("stored is %s, %v, not %s", stored, err, it.Data())
		}
	}
}
