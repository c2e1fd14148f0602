package kafkaevent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/installation"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// twoOn returns the same queue and group of two installations on one broker: one without a name, and another one.
func twoOn(t *testing.T) (nameless, named *place) {
	t.Helper()
	nameless = newPlace(t)
	nameless.group = groupsOf + nameless.group
	other := *nameless
	other.cfg.Installation = installation.Name(strings.TrimSuffix(kafkatest.Prefix(), "-"))
	return nameless, &other
}

func TestInstallationsOnOneBrokerDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, time.Minute)
	a, b := twoOn(t)
	for n, p := range []*place{a, b} {
		p.createTopic()
		publish(t, p.producer(), p.events(100*n, 100*n+50+n, 7))
	}
	for n, p := range []*place{a, b} {
		got, followed := newSeen(), newSeen()
		<-p.tailer(followed).Started()
		m := p.member(10, got.handle)
		got.wait(ctx, t, 50+n)
		if got.times["0"] != 1-n || got.times["100"] != n {
			t.Errorf("installation %d has events of the other", n)
		}
		if parts := m.Group().Partitions(); len(parts) == 0 || parts[0].Topic != p.topic || got.order[p.topic+" key0"] == nil {
			t.Errorf("it has %v, and records of %v", parts, got.order)
		}
		publish(t, p.producer(), p.events(200, 203, 3))
		followed.wait(ctx, t, 3)
		lags := NewLags(p.cfg)
		defer lags.Close()
		until(ctx, t, "the lag is that of its own group and topic", func() bool {
			read, err := lags.Read(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return slices.Contains(read, Lag{Function: strings.TrimPrefix(p.group, groupsOf), Topic: p.topic, Members: 1})
		})
		m.stop()
	}
}

func TestWhatIsDeletedOfOneInstallationStaysOfTheOther(t *testing.T) {
	t.Parallel()
	if kafkatest.Shared() {
		t.Skip("it empties all topics of an installation")
	}
	ctx := testwait.Within(t, time.Minute)
	a, b := twoOn(t)
	for _, p := range []*place{a, b} {
		if err := CreateTopics(ctx, p.cfg, jobevent.Topics([]string{p.queue})); err != nil {
			t.Fatal(err)
		}
		publish(t, p.producer(), p.events(0, 20, 3))
		got := newSeen()
		m := p.member(10, got.handle)
		got.wait(ctx, t, 20)
		m.stop()
	}
	for _, one := range []struct{ emptied, kept *place }{{a, b}, {b, a}} {
		before := one.kept.topics()
		m := one.kept.member(10, newSeen().handle) // its functions may run meanwhile
		if err := EmptyTopics(ctx, one.emptied.cfg, jobevent.Topics(nil)); err != nil {
			t.Error(err)
		}
		if err := DeleteTopic(ctx, one.emptied.cfg, one.emptied.topic, one.emptied.group); err != nil {
			t.Error(err)
		}
		m.stop()
		if after := one.kept.topics(); !slices.Equal(before, after) {
			t.Errorf("of %v are left %v", before, after)
		}
		for p, want := range map[*place]int{one.emptied: 0, one.kept: 1} {
			if queues, err := Queues(ctx, p.cfg); err != nil || len(queues) != want {
				t.Errorf("installation %q has the queues %v, %v", p.cfg.Installation, queues, err)
			}
		}
		one.emptied.createTopic()
	}
}

// topics returns the topics of the installation with their ids.
func (p *place) topics() (all []string) {
	p.t.Helper()
	p.admin(func(a sarama.ClusterAdmin) error {
		found, err := a.DescribeTopics(p.cfg.ownNames(names(jobevent.Topics([]string{p.queue}))))
		for _, topic := range found {
			all = append(all, topic.Name+" "+topic.Uuid.String())
		}
		return err
	})
	return all
}

func names(topics []jobevent.Topic) (all []string) {
	for _, topic := range topics {
		all = append(all, topic.Name)
	}
	return all
}

func TestAnInstallationWithABadNameConnectsToNothing(t *testing.T) {
	t.Parallel()
	_, err := NewProducer(Config{Brokers: []string{"127.0.0.1:1"}, Installation: "a.b"})
	if err == nil || !strings.HasPrefix(err.Error(), "INSTALLATION: ") {
		t.Errorf("it gives %v", err)
	}
}
