package funchost

import (
	"bytes"
	"fmt"
	stdlog "log"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

type lockedBuf struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuf) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }

func TestZZOrder(t *testing.T) {
	var lb lockedBuf
	sarama.Logger = stdlog.New(&lb, "", stdlog.Lmicroseconds)
	for round := range 240 {
	  t.Run(fmt.Sprint(round), func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		var events []event.Event
		for n := range 20 {
			events = append(events, p.event(p.in, strconv.Itoa(n)))
		}
		publish, closing, err := NewPublisher(p.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := publish(within(t, time.Minute), events); err != nil {
			t.Fatal(err)
		}
		closing()
		topic := jobevent.RunTopic(p.in)
		cfg, _ := p.cfg.Kafka.Sarama()
		c, err := sarama.NewConsumer(p.cfg.Kafka.Brokers, cfg)
		if err != nil {
			t.Fatal(err)
		}
		pc, err := c.ConsumePartition(topic, 8, sarama.OffsetOldest)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for len(ids) < 20 {
			e, err := kafkaevent.Decode(<-pc.Messages())
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, e.ID())
		}
		_ = pc.Close()
		_ = c.Close()
		if !slices.Equal(ids, numbers(0, 20)) {
			lb.mu.Lock()
			fmt.Fprintln(os.Stderr, "ROUND", topic, ids)
			fmt.Fprintln(os.Stderr, lb.b.String())
			lb.mu.Unlock()
			os.Exit(1)
		}
	  })
	}
}
