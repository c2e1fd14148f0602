package doctor

import (
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/secret"
)

func TestFaultsOfTopicsAreFound(t *testing.T) {
	t.Parallel()
	if kafkatest.Shared() {
		t.Skip("other tests use the topics")
	}
	i := withoutDatabases()
	e := &i.Environments[0]
	e.Host.Kafka = kafkaevent.Config{Brokers: kafkatest.Brokers(t), ReplicationFactor: 1}
	if r := of(t, i, "topics"); !found(r, "does not exist") || len(r.Findings) != len(jobevent.Topics(e.Host.Queues)) {
		t.Errorf("no topics: %+v", r)
	}
	if err := kafkaevent.CreateTopics(t.Context(), e.Host.Kafka, jobevent.Topics(e.Host.Queues)); err != nil {
		t.Fatal(err)
	}
	if r := of(t, i, "topics"); len(r.Findings)+len(r.Unseen) > 0 {
		t.Errorf("all topics: %+v", r)
	}
	settings, err := e.Host.Kafka.Sarama()
	if err != nil {
		t.Fatal(err)
	}
	settings.Metadata.Full = true
	admin, err := sarama.NewClusterAdmin(e.Host.Kafka.Brokers, settings)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close() }()
	minute := "60000"
	if err := admin.AlterConfig(sarama.TopicResource, jobevent.TopicRun, map[string]*string{"retention.ms": &minute}, false); err != nil {
		t.Fatal(err)
	}
	if r := of(t, i, "topics"); !found(r, "retention.ms=60000") {
		t.Errorf("a retention of a minute: %+v", r)
	}
	e.Host.Queues = append(e.Host.Queues, "mail")
	if r := of(t, i, "topics"); !found(r, "does not exist") {
		t.Errorf("a queue without a topic: %+v", r)
	}
}

func TestFaultsOfBrokersAreFound(t *testing.T) {
	t.Parallel()
	guarded, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.User("PLAIN", "jobweaver", "hunter2000"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(guarded.Close)
	old, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.MaxVersions(kversion.V2_2_0()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(old.Close)
	for name, c := range map[string]struct {
		cfg         kafkaevent.Config
		check, want string
	}{
		"stopped": {kafkaevent.Config{Brokers: []string{"127.0.0.1:1"}}, "topics", "cannot be used"},
		"silent":  {kafkaevent.Config{Brokers: []string{silent(t)}}, "topics", "cannot be used"},
		"a wrong password": {kafkaevent.Config{
			Brokers: guarded.ListenAddrs(), SASLMechanism: "PLAIN", SASLUsername: "jobweaver", SASLPassword: secret.Of("hunter2001"),
		}, "topics", "cannot be used"},
		"no password": {kafkaevent.Config{Brokers: guarded.ListenAddrs()}, "topics", "cannot be used"},
		"old":         {kafkaevent.Config{Brokers: old.ListenAddrs()}, "versions", "older than Apache Kafka 2.3"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			i := withoutDatabases()
			i.Environments[0].Host.Kafka = c.cfg
			if r := of(t, i, c.check); !found(r, c.want) {
				t.Errorf("%+v", r)
			}
		})
	}
}
