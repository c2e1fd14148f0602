package apidb_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// An insert or a query of the readiness probe corrects any wrong estimate.
func TestEachAnswerOfTheDatabaseCorrectsTheTimeOfIDs(t *testing.T) {
	t.Parallel()
	s := open(t)
	insert := func() error {
		_, err := s.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{{
			JobID: jobevent.JobID(s.NewID(), true), TraceID: uuid.New(), Whose: apidb.Everyone,
			Request: jobspec.Request{JobType: "X", Queue: "default", Payload: []byte("{}"), Spec: jobevent.Spec{TimeoutMs: (time.Minute).Milliseconds()}},
		}})
		return err
	}
	near(t, s.NewID(), time.Now())
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		for name, ask := range map[string]func() error{
			"insert": insert, "ping": func() error { return s.Ping(t.Context()) },
		} {
			s.ShiftClock(step)
			near(t, s.NewID(), time.Now().Add(step))
			if err := ask(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			near(t, s.NewID(), time.Now())
		}
	}
}

// near fails the test if the time of an id is not close to the wanted one. IDs have milliseconds, and the machine may
// be slow.
func near(t *testing.T, id uuid.UUID, want time.Time) {
	t.Helper()
	if off := time.Unix(id.Time().UnixTime()).Sub(want).Abs(); off > time.Minute {
		t.Errorf("the id's time is off by %s", off)
	}
}
