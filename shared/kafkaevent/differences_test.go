package kafkaevent

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

func TestOurOwnTopicsDoNotDifferFromWhatIsNeeded(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	topics := []jobevent.Topic{
		{Name: p.topic, Partitions: 12, Retention: jobevent.MaxRetention},
		{Name: p.topic + "-brief", Partitions: 1, Retention: time.Hour},
		{Name: p.topic + "-compacted", Partitions: 3, Compacted: true},
	}
	if err := CreateTopics(testwait.Within(t, time.Minute), p.cfg, topics); err != nil {
		t.Fatal(err)
	}
	all, err := CompareTopics(testwait.Within(t, time.Minute), p.cfg, topics)
	for _, d := range all {
		if d.Harmful || !strings.Contains(d.Is, "replication factor 1") { // the brokers' default may be 1
			t.Errorf("%+v", d)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// A platform team may make the topics beforehand, with the settings of its own.
func TestTheDifferencesOfATopicAreFound(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	right := map[string]string{
		"cleanup.policy": "delete", "max.message.bytes": "2228224", "retention.ms": "604800000", "segment.ms": "43200000",
	}
	for name, c := range map[string]struct {
		change     map[string]string
		partitions int32
		compacted  bool
		want       string
		harmful    bool
	}{
		"larger":    {map[string]string{"max.message.bytes": "9000000"}, 30, false, "", false},
		"few":       {nil, 2, false, "partitions=2, needed are 12", false},
		"small":     {map[string]string{"max.message.bytes": "1048588"}, 12, false, "max.message.bytes=1048588, needed are 2228224", true},
		"compacted": {map[string]string{"cleanup.policy": "compact"}, 12, false, "cleanup.policy=compact, needed is delete", true},
		"status":    {nil, 12, true, "cleanup.policy=delete, needed is compact", true},
		"both":      {map[string]string{"cleanup.policy": "compact,delete"}, 12, true, "needed is compact", true},
		"long":      {map[string]string{"retention.ms": "2592000000"}, 12, false, "old records could take effect again", true},
		"endless":   {map[string]string{"retention.ms": "-1"}, 12, false, "old records could take effect again", true},
		"a day":     {map[string]string{"retention.ms": "86400000"}, 12, false, "retention.ms=86400000, JobWeaver sets 604800000", false},
		"a minute":  {map[string]string{"retention.ms": "60000"}, 12, false, "retention.ms=60000", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := p.topic + "-" + strings.ReplaceAll(name, " ", "-")
			detail := &sarama.TopicDetail{NumPartitions: c.partitions, ReplicationFactor: 1, ConfigEntries: map[string]*string{}}
			settings := maps.Clone(right)
			maps.Copy(settings, c.change)
			for setting, value := range settings {
				detail.ConfigEntries[setting] = &value
			}
			p.admin(func(a sarama.ClusterAdmin) error { return a.CreateTopic(topic, detail, false) })
			needed := jobevent.Topic{Name: topic, Partitions: 12, Retention: jobevent.MaxRetention, Compacted: c.compacted}
			all, err := CompareTopics(testwait.Within(t, time.Minute), p.cfg, []jobevent.Topic{needed})
			all = slices.DeleteFunc(all, func(d Difference) bool { return strings.Contains(d.Is, "replication factor 1 on") })
			if err != nil || Harmful(all) != c.harmful || len(all) == 0 != (c.want == "") {
				t.Fatalf("%+v, %v", all, err)
			}
			if c.want != "" && !strings.Contains(all[0].Is, c.want) {
				t.Errorf("%+v, want %s", all, c.want)
			}
		})
	}
}

func TestAReplicationFactorBelowTheSettingIsHarmful(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	p := placeOn(t, cluster.ListenAddrs())
	topics := []jobevent.Topic{{Name: p.topic, Partitions: 3, Retention: time.Hour}}
	single := p.cfg
	single.ReplicationFactor = 1
	if err := CreateTopics(testwait.Within(t, time.Minute), single, topics); err != nil {
		t.Fatal(err)
	}
	p.cfg.ReplicationFactor = 3
	for cfg, harmful := range map[*Config]bool{&p.cfg: true, &single: false} {
		all, err := CompareTopics(testwait.Within(t, time.Minute), *cfg, topics)
		if err != nil || len(all) != 1 || !strings.Contains(all[0].Is, "replication factor 1") || Harmful(all) != harmful {
			t.Errorf("with %d: %+v, %v", cfg.ReplicationFactor, all, err)
		}
	}
	// Without a setting a topic has the brokers' default, which is 3 here.
	other := []jobevent.Topic{{Name: p.topic + "-default", Partitions: 3, Retention: time.Hour}}
	p.cfg.ReplicationFactor = 0
	if err := CreateTopics(testwait.Within(t, time.Minute), p.cfg, other); err != nil {
		t.Fatal(err)
	}
	p.cfg.ReplicationFactor = 3
	if all, err := CompareTopics(testwait.Within(t, time.Minute), p.cfg, other); err != nil || len(all) > 0 {
		t.Errorf("by default: %+v, %v", all, err)
	}
}

// Without the right Describe a broker answers alike for topics that are there and for others.
func TestATopicThatMayNotBeSeenIsNotTakenForOneThatIsThere(t *testing.T) {
	t.Parallel()
	describe := kfake.ACL{
		Resource: kmsg.ACLResourceTypeTopic, Name: "seen", Pattern: kmsg.ACLResourcePatternTypeLiteral,
		Operation: kmsg.ACLOperationDescribe, Allow: true,
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(12, "seen", "unseen"),
		kfake.User("PLAIN", "limited", password, describe))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	cfg := Config{
		Brokers: cluster.ListenAddrs(), SASLMechanism: "PLAIN", SASLUsername: "limited", SASLPassword: secret.Of(password),
	}
	for _, name := range []string{"unseen", "missing"} {
		err := CreateTopics(testwait.Within(t, time.Minute), cfg, []jobevent.Topic{{Name: name, Partitions: 12}})
		if !errors.Is(err, sarama.ErrTopicAuthorizationFailed) || !strings.Contains(err.Error(), name+": whether it is there") {
			t.Errorf("%s: %v", name, err)
		}
	}
	seen := []jobevent.Topic{{Name: "seen", Partitions: 12, Retention: jobevent.MaxRetention}}
	if err := CreateTopics(testwait.Within(t, time.Minute), cfg, seen); err != nil {
		t.Error(err)
	}
	all, err := CompareTopics(testwait.Within(t, time.Minute), cfg, seen)
	if err != nil || len(all) != 1 || !strings.Contains(all[0].Is, "DescribeConfigs") {
		t.Errorf("%+v, %v", all, err)
	}
}
