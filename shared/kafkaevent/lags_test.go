package kafkaevent

import (
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

func TestLagIsWhatAGroupHasNotCommitted(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, time.Minute)
	p := newPlace(t)
	p.group = groupsOf + p.group
	lags := NewLags(p.cfg)
	defer lags.Close()
	mine := func() (lag Lag) {
		read, err := lags.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, lag := range read {
			if lag.Topic == p.topic {
				return lag
			}
		}
		return Lag{}
	}
	if lag := mine(); lag != (Lag{}) {
		t.Errorf("before there is a group: %+v", lag)
	}
	p.createTopic()
	got := newSeen()
	m := p.member(10, got.handle)
	until(ctx, t, "the group subscribes, and nothing is committed", func() bool { return mine().Members == 1 })
	if lag := mine(); lag.Records != 0 {
		t.Errorf("nothing was published: %+v", lag)
	}
	publish(t, p.producer(), p.events(0, 100, 7))
	got.wait(ctx, t, 100)
	until(ctx, t, "all is committed", func() bool { return mine().Records == 0 })
	m.stop()
	publish(t, p.producer(), p.events(100, 130, 7))
	until(ctx, t, "the member has left", func() bool { return mine().Members == 0 })
	if lag := mine(); lag.Records != 30 || groupsOf+lag.Function != p.group {
		t.Errorf("after the group has stopped: %+v", lag)
	}
}

func TestLagIsReadAgainWhenTheBrokerIsBack(t *testing.T) {
	t.Parallel()
	if kafkatest.Shared() {
		t.Skip("others need the broker")
	}
	broker, err := localkafka.StartEmbedded(localkafka.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := placeOn(t, broker.Brokers())
	p.createTopic()
	lags := NewLags(p.cfg)
	defer lags.Close()
	if _, err := lags.Read(testwait.Within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := broker.Stop(); err != nil {
		t.Fatal(err)
	}
	if read, err := lags.Read(testwait.Within(t, time.Minute)); err == nil {
		t.Fatalf("read %+v without a broker", read)
	}
	lags.cfg.Brokers = kafkatest.Brokers(t) // the broker elsewhere
	if _, err := lags.Read(testwait.Within(t, time.Minute)); err != nil {
		t.Error(err)
	}
}
