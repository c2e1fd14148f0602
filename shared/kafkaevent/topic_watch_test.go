package kafkaevent

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// chaos F3: while brokers are away each partition reports every 350 ms, each time with another local port.
func TestAnOutageOfBrokersIsLoggedOnceAMinuteAndNotByEachPartition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		ctx := telemetry.WithLogger(context.Background(), slog.New(slog.NewTextHandler(&out, nil)))
		c, err := NewGroupConsumer(Config{Brokers: []string{"127.0.0.1:1"}}, "group", []string{"topic"})
		if err != nil {
			t.Fatal(err)
		}
		watch := &topicWatch{consumer: c, kick: make(chan struct{}, 1)}
		errs := make(chan error)
		go func() {
			defer close(errs)
			for i := range 300 {
				errs <- &sarama.ConsumerError{Topic: "topic", Partition: int32(i % 3), Err: fmt.Errorf("read tcp :%d: reset", 40_000+i)}
				<-time.After(350 * time.Millisecond)
			}
		}()
		watch.logErrors(ctx, errs)
		if lines := strings.Count(out.String(), "\n"); lines != 2 {
			t.Errorf("logged %d lines in 105 s: %s", lines, out.String())
		}
		<-time.After(watchInterval)
		if c.trouble.Note(ctx, nil); c.trouble.Ongoing() {
			t.Error("it has not ended")
		}
	})
}
