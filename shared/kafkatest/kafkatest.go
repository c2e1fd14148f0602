// Package kafkatest gives tests a Kafka broker: one of their own, embedded, or the Apache Kafka whose
// address is in KAFKATEST_BROKERS.
package kafkatest

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
)

// Brokers returns the bootstrap list of a broker for this test. If Shared, other tests use the broker too.
func Brokers(t testing.TB) []string {
	t.Helper()
	if list := os.Getenv("KAFKATEST_BROKERS"); list != "" {
		return strings.Split(list, ",")
	}
	s, err := localkafka.StartEmbedded(localkafka.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s.Brokers()
}

// Shared reports whether all tests get the same broker: topics hold records of other tests.
func Shared() bool { return os.Getenv("KAFKATEST_BROKERS") != "" }

// Prefix returns the prefix for the names of this test's queues, groups and topics, which no other test and no earlier
// run has.
func Prefix() string { return "t" + strings.ToLower(rand.Text()[:12]) + "-" }

// IgnoreSarama is for goleak: sarama's metrics keep one goroutine for the life of the process.
func IgnoreSarama() goleak.Option {
	return goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick")
}
