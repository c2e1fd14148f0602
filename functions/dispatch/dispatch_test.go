package dispatch

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestTheClockIsWokenSleepsAndSendsOut(t *testing.T) {
	t.Parallel()
	store, err := schedulerdb.Open(t.Context(), pgtest.Database(t, migrations.Scheduler),
		schedulerdb.Config{Lease: 15 * time.Second, MaxLost: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	host := New(store).Host()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx, nil) }()
	<-host.Wake // it listens now
	if events, next, err := host.Tick(ctx); err != nil || len(events) != 0 || next != idle {
		t.Errorf("with nothing to do it returned %v and sleeps %s (%v)", events, next, err)
	}
	const wait = 2 * time.Second
	soon := time.Now().Add(wait)
	if _, err := store.Ingest(ctx, []jobevent.Created{{
		JobID: uuid.Must(uuid.NewV7()), JobType: "A", Queue: "default", Payload: []byte(`1`), Spec: jobevent.Spec{TimeoutMs: 1}, RunAt: &soon,
	}}); err != nil {
		t.Fatal(err)
	}
	<-host.Wake
	for {
		events, next, err := host.Tick(ctx)
		if err != nil || next > wait && len(events) == 0 {
			t.Fatalf("it publishes nothing and sleeps %s (%v)", next, err)
		}
		if len(events) > 0 {
			if events[0].Type() != jobevent.TypeRun || events[1].Type() != jobevent.TypeStatus || time.Now().Before(soon) {
				t.Errorf("it returned %v", events)
			}
			break
		}
		<-time.After(next)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
