package kafkaevent

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// BenchmarkHop measures the time of a record from Publish to its acknowledgement, and to the handler of a group, at a
// hundred records a second: at such a low rate every wait at the broker shows.
func BenchmarkHop(b *testing.B) {
	p := newPlace(b)
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	consumer, err := NewBatchConsumer(p.cfg, p.group, []string{p.topic}, 1000)
	if err != nil {
		b.Fatal(err)
	}
	arrived := make(chan time.Time, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- consumer.Run(ctx, func(context.Context, []*sarama.ConsumerMessage) (func() error, error) {
			arrived <- time.Now()
			return nil, nil
		})
	}()
	producer, err := NewProducer(p.cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer producer.Close()
	for range 20 { // until all connections are open
		if err := producer.Publish(ctx, p.events(0, 1, 1)); err != nil {
			b.Fatal(err)
		}
		<-arrived
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var acked, hops []time.Duration
	b.ResetTimer()
	for n := range b.N {
		<-tick.C
		began := time.Now()
		if err := producer.Publish(ctx, p.events(n, n+1, 12)); err != nil {
			b.Fatal(err)
		}
		acked = append(acked, time.Since(began))
		hops = append(hops, (<-arrived).Sub(began))
	}
	slices.Sort(acked)
	slices.Sort(hops)
	b.ReportMetric(float64(acked[len(acked)/2].Microseconds()), "µs-acked-p50")
	b.ReportMetric(float64(acked[len(acked)*95/100].Microseconds()), "µs-acked-p95")
	b.ReportMetric(float64(hops[len(hops)/2].Microseconds()), "µs-hop-p50")
	b.ReportMetric(float64(hops[len(hops)*95/100].Microseconds()), "µs-hop-p95")
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
