package watchdog

import (
	"errors"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func newStore(t *testing.T, lease time.Duration) *schedulerdb.Store {
	t.Helper()
	store, err := schedulerdb.Open(t.Context(), pgtest.Database(t, migrations.Scheduler),
		schedulerdb.Config{Lease: lease, MaxLost: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

func TestOddHeartbeatsAreRejectedOrDoNoHarm(t *testing.T) {
	t.Parallel()
	f := New(newStore(t, 15*time.Second))
	for name, c := range map[string]struct {
		data    string
		invalid bool
	}{
		"a heartbeat":                    {`{"workerId": "w", "slots": 1, "rate": 1.5, "partitions": {"default": [0]}}`, false},
		"one of a worker without name":   {`{"slots": 1}`, true},
		"one of less than no slots":      {`{"workerId": "w", "slots": -1}`, true},
		"slots beyond their column":      {`{"workerId": "w", "slots": 4294967297}`, false},
		"slots beyond any number":        {`{"workerId": "w", "slots": 1e99}`, true},
		"a rate beyond any number":       {`{"workerId": "w", "rate": 1e999}`, true},
		"a partition beyond its column":  {`{"workerId": "w", "partitions": {"default": [4294967297]}}`, true},
		"a partition that is not there":  {`{"workerId": "w", "partitions": {"default": [-1, 70000]}}`, false},
		"an attempt of nothing":          {`{"workerId": "w", "attempts": [{}]}`, false},
		"an attempt started before time": {`{"workerId": "w", "attempts": [{"startedAt": "0000-01-01T00:00:00Z"}]}`, true},
		"no JSON":                        {`{`, true},
	} {
		e := event.New()
		e.SetType(jobevent.TypeHeartbeat)
		e.DataEncoded = []byte(c.data)
		if events, err := f.Handle(t.Context(), []jobevent.Item{jobevent.ItemOf(e)}); errors.Is(err, jobevent.ErrInvalid) != c.invalid || err != nil && !c.invalid {
			t.Errorf("%s returned %v, %v", name, events, err)
		}
	}
}

func TestAPassThatWasFullIsFollowedAtOnce(t *testing.T) {
	t.Parallel()
	store := newStore(t, time.Microsecond) // so that an attempt is asked about as soon as it is out
	f := New(store)
	if _, err := store.Heartbeat(t.Context(), []jobevent.Heartbeat{{
		WorkerID: "w", Slots: schedulerdb.AskMost, Partitions: map[string][]int32{"default": {0}},
	}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		jobs   int
		atOnce bool // otherwise it looks when the time has come, which a slow count delays
	}{{schedulerdb.AskMost - 1, false}, {1, true}} {
		jobs := make([]jobevent.Created, c.jobs)
		for i := range jobs {
			jobs[i] = jobevent.Created{
				JobID: uuid.Must(uuid.NewV7()), JobType: "A", Queue: "default", Payload: []byte(`1`), Spec: jobevent.Spec{TimeoutMs: 1},
			}
		}
		if _, err := store.Ingest(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		if events, next, err := f.Tick(t.Context()); err != nil || (next == 0) != c.atOnce || !c.atOnce && next < every {
			t.Errorf("next in %s, %d events, %v", next, len(events), err)
		}
	}
}
