package kafkaevent

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// The retention of a topic is read from its broker; a constant in the code could differ from it.
func TestTheRetentionOfATopicIsReadFromItsBroker(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.createTopic()
	long, endless, compacted := p.topic+"-long", p.topic+"-endless", p.topic+"-compacted"
	p.admin(func(a sarama.ClusterAdmin) error {
		return errors.Join(
			a.CreateTopic(long, detailOf("delete", "2592000000"), false),
			a.CreateTopic(endless, detailOf("delete", "-1"), false),
			a.CreateTopic(compacted, detailOf("compact", "1000"), false))
	})
	var keepings []Keeping
	until(testwait.Within(t, time.Minute), t, "the brokers know the topics", func() (known bool) {
		var err error
		keepings, err = Keepings(testwait.Within(t, time.Minute), p.cfg, []string{p.topic, long, endless, compacted})
		if err != nil && !errors.Is(err, sarama.ErrUnknownTopicOrPartition) { // a broker may not know a new topic yet
			t.Fatal(err)
		}
		return err == nil
	})
	day := 24 * time.Hour
	want := []Keeping{
		{p.topic, "delete", jobevent.MaxRetention, jobevent.SegmentAge}, {long, "delete", 30 * day, day},
		{endless, "delete", Forever, day}, {compacted, "compact", time.Second, day},
	}
	if !slices.Equal(keepings, want) {
		t.Fatalf("they say\n%v, want\n%v", keepings, want)
	}
	for i, gone := range []time.Duration{jobevent.RecordsGone, 31*day + jobevent.BrokerLooks, Forever, Forever} {
		if got := keepings[i].Gone(); got != gone {
			t.Errorf("%+v: records are gone after %s, want %s", keepings[i], got, gone)
		}
	}
	if _, err := Keepings(testwait.Within(t, time.Minute), p.cfg, []string{p.topic + "-missing"}); !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
		t.Errorf("of a topic that is missing: %v", err)
	}
}

func detailOf(policy, retention string) *sarama.TopicDetail {
	day := "86400000"
	return &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1, ConfigEntries: map[string]*string{
		"cleanup.policy": &policy, "retention.ms": &retention, "segment.ms": &day,
	}}
}

// The users in infra/kubernetes/kafka have this right and no other for it.
func TestDescribeConfigsIsTheRightToKnowHowLongRecordsAreKept(t *testing.T) {
	t.Parallel()
	const topic = jobevent.TopicCreated
	right := func(op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{
			Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true,
		}
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topic), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.User("PLAIN", "may", password, right(kmsg.ACLOperationDescribeConfigs)),
		kfake.User("PLAIN", "reads", password, right(kmsg.ACLOperationRead)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	ask := func(who string) error {
		cfg := Config{Brokers: cluster.ListenAddrs(), SASLMechanism: "PLAIN", SASLUsername: who, SASLPassword: secret.Of(password)}
		_, err := Keepings(testwait.Within(t, time.Minute), cfg, []string{topic})
		return err
	}
	if err := ask("may"); err != nil {
		t.Error(err)
	}
	if err := ask("reads"); !errors.Is(err, sarama.ErrTopicAuthorizationFailed) {
		t.Errorf("without the right: %v", err)
	}
}
