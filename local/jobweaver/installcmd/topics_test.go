package installcmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
)

func TestTopicsCreateFailsIfATopicWouldLoseEvents(t *testing.T) {
	if kafkatest.Shared() {
		t.Skip("other tests use the topics")
	}
	brokers := kafkatest.Brokers(t)
	t.Setenv("KAFKA_BROKERS", brokers[0])
	settings, err := kafkaevent.Config{Brokers: brokers}.Sarama()
	if err != nil {
		t.Fatal(err)
	}
	settings.Metadata.Full = true
	admin, err := sarama.NewClusterAdmin(brokers, settings)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close() }()
	policy := "delete"
	if err := admin.CreateTopic("job-status", &sarama.TopicDetail{
		NumPartitions: 1, ReplicationFactor: 1, ConfigEntries: map[string]*string{"cleanup.policy": &policy},
	}, false); err != nil {
		t.Fatal(err)
	}
	printed, err := createdTopics()
	if err == nil || !strings.Contains(err.Error(), "would lose events") {
		t.Errorf("a wrong topic: %v", err)
	}
	for _, want := range []string{"run-job is there\n", "job-status is there\n  partitions=1", "\n  cleanup.policy=delete, needed is compact"} {
		if !strings.Contains(printed, want) {
			t.Errorf("it prints no %q:\n%s", want, printed)
		}
	}
	if err := admin.DeleteTopic("job-status"); err != nil {
		t.Fatal(err)
	}
	if printed, err = createdTopics(); err != nil || strings.Contains(printed, "needed") {
		t.Errorf("%v:\n%s", err, printed)
	}
}

func createdTopics() (printed string, err error) {
	var out bytes.Buffer
	command := NewTopics()
	command.SetArgs([]string{"create"})
	command.SetOut(&out)
	command.SetErr(&out)
	command.SilenceUsage, command.SilenceErrors = true, true
	err = command.Execute()
	return out.String(), err
}
