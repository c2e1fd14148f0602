package knative

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// With a Broker that was slow for half a minute, the load was several times higher for minutes: 2,488 run-job records
// for 883 attempts. Here its ingress takes 5 to 15 s for each event, all the time, so that most statuses arrive only
// after a lease. The watchdog then asks once, and again only if there is no sign of the attempt for a long time.
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
	ended := make([]*client.Job, jobs)
	for n := range jobs {
		all.Go(func() (err error) {
			if ended[n], err = h.ending(ctx, h.calling(o, 0, map[string]any{"n": n}, nil), "COMPLETED", 1); err != nil {
				return err
			}
			return o.check(ctx, ended[n].JobID, "COMPLETED", 1)
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	orders := h.ordersOf(ctx)
	often := map[int]int{} // the number of attempts, by how often they were ordered
	for _, job := range ended {
		times := orders[jobevent.RunID(uuid.MustParse(job.JobID), 1)]
		often[times]++
		if most := ordersMost(job); times < 1 || times > most {
			t.Errorf("%s was ordered %d times, not 1 to %d: %+v", job.JobID, times, most, job.History)
		}
	}
	t.Logf("%d jobs took %s; attempts by their run-job records: %v; events: %v", jobs, time.Since(began).Round(time.Second), often, h.broker.taken)
}

// ordersMost returns how often the one attempt of a job may be ordered at most: once, and again whenever there was no
// sign of it for a lease of 15 s. The second question comes no sooner than 0.8 leases after the first, and each later
// one after twice the time.
func ordersMost(job *client.Job) int {
	most := 1
	for n := 1; n < len(job.History); n++ {
		silence := job.History[n].At.Sub(job.History[n-1].At)
		for after, next := 15*time.Second, 12*time.Second; silence >= after; after, next = after+next, 2*next {
			most++
		}
	}
	return most
}

// ordersOf counts the items on run-job by their id.
func (h *fixture) ordersOf(ctx context.Context) map[string]int {
	h.t.Helper()
	kafka, err := kgo.NewClient(kgo.SeedBrokers(h.brokers...), kgo.ConsumeTopics(jobevent.TopicRun))
	if err != nil {
		h.t.Fatal(err)
	}
	defer kafka.Close()
	orders := map[string]int{}
	for {
		soon, cancel := context.WithTimeout(ctx, 2*time.Second) // the read at the end of the topic blocks
		fetched := kafka.PollFetches(soon)
		cancel()
		if fetched.NumRecords() == 0 {
			return orders
		}
		fetched.EachRecord(func(record *kgo.Record) {
			e := event.New()
			for _, header := range record.Headers {
				switch header.Key {
				case "ce_id":
					e.SetID(string(header.Value))
				case "ce_type":
					e.SetType(string(header.Value))
				}
			}
			e.DataEncoded = record.Value
			items, err := jobevent.Unpack(e)
			if err != nil {
				h.t.Error(err)
			}
			for _, it := range items {
				orders[it.ID()]++
			}
		})
	}
}
