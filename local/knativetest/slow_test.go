package knativetest

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// knative A1: a Broker that was slow for half a minute got several times its load for minutes: 2,488 run-job records for
// 883 attempts. Here its ingress takes 5 to 15 s for each event, all the time. A job's way is four events, so the watchdog
// asks once about most attempts, after a lease, and again after some two more; and reconcile's job.created may find the
// lease over just before the watchdog does. Measured: 89 records for 40 attempts, none more often than three times.
func TestBehindASlowBrokerNoAttemptIsOrderedOverAndOver(t *testing.T) {
	if testing.Short() {
		t.Skip("takes more than a minute")
	}
	t.Parallel()
	const jobs = 40
	h := raiseSlow(t, rand.New(rand.NewPCG(1, 0)), nil, func() time.Duration { return 5*time.Second + rand.N(10*time.Second) })
	o := newOutside(t, h.webhooks)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	began := time.Now()
	var all errgroup.Group
	for n := range jobs {
		all.Go(func() error {
			job, err := h.ending(ctx, h.calling(o, 0, map[string]any{"n": n}, nil), "COMPLETED", 1)
			if err != nil {
				return err
			}
			return o.check(ctx, job.JobID, "COMPLETED", 1)
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	orders := h.ordersOf(ctx)
	total := 0
	for id, times := range orders {
		if total += times; times > 3 {
			t.Errorf("%s was ordered %d times", id, times)
		}
	}
	if len(orders) != jobs {
		t.Errorf("%d attempts were ordered", len(orders))
	}
	t.Logf("%d jobs took %s, %d run-job records, %v", jobs, time.Since(began).Round(time.Second), total, h.broker.taken)
}

// ordersOf counts the records of run-job by their event's id.
func (h *house) ordersOf(ctx context.Context) map[string]int {
	h.t.Helper()
	kafka, err := kgo.NewClient(kgo.SeedBrokers(h.brokers...), kgo.ConsumeTopics(jobevent.TopicRun))
	if err != nil {
		h.t.Fatal(err)
	}
	defer kafka.Close()
	orders := map[string]int{}
	for {
		soon, cancel := context.WithTimeout(ctx, 2*time.Second) // after all of the topic comes nothing
		fetched := kafka.PollFetches(soon)
		cancel()
		if fetched.NumRecords() == 0 {
			return orders
		}
		fetched.EachRecord(func(record *kgo.Record) {
			for _, header := range record.Headers {
				if header.Key == "ce_id" {
					orders[string(header.Value)]++
				}
			}
		})
	}
}
