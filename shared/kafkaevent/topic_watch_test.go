package kafkaevent

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// While brokers are unavailable each partition reports an error every 350 ms, each time with another local port.
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

// A check may go on when its consumer has closed the client.
func TestACheckOpensNoConnectionOfAClosedClient(t *testing.T) {
	p := newPlace(t)
	inner, err := openClient(p.cfg, func(*sarama.Config) {})
	if err != nil {
		t.Fatal(err)
	}
	client := &closingClient{Client: inner}
	w := &topicWatch{consumer: &GroupConsumer{topics: []string{p.topic}}, client: client}
	if found, err := w.describe(t.Context()); err == nil {
		t.Errorf("a closed client describes %v", found)
	}
	if connected, _ := client.found.Connected(); connected {
		t.Error("the broker has a connection that nothing closes")
	}
}

// closingClient is closed between the choice of a broker and its use.
type closingClient struct {
	sarama.Client
	found *sarama.Broker
}

func (c *closingClient) LeastLoadedBroker() *sarama.Broker {
	c.found = c.Client.LeastLoadedBroker()
	_ = c.Client.Close()
	for connected := true; connected; connected, _ = c.found.Connected() { // it closes in the background
		runtime.Gosched()
	}
	return c.found
}
