package kubernetes_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/goccy/go-yaml"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/jobweaver/jobweaver/shared/certtest"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/secret"
)

// kafkaUser is the part of users.yaml that Strimzi reads.
type kafkaUser struct {
	Metadata struct{ Name string }
	Spec     struct {
		Authentication struct{ Type string }
		Authorization  struct {
			ACLs []struct {
				Resource struct {
					Type, Name  string
					PatternType string `yaml:"patternType"`
				}
				Operations []string
			} `yaml:"acls"`
		}
	}
}

// kafkaOf starts a broker that admits the users of users.yaml with their rights, as the functions see it, and those of
// further texts of that form.
func kafkaOf(t *testing.T, more ...string) (as func(user string) kafkaevent.Config) {
	t.Helper()
	ca := certtest.New(t)
	pair := ca.Issue(t, "127.0.0.1")
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	opts := []kfake.Opt{
		kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}}), //nolint:gosec // its default is 1.2
	}
	for _, user := range users(t, more...) {
		opts = append(opts, kfake.User("SCRAM-SHA-512", user.Metadata.Name, "pass word", rights(t, user)...))
	}
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	files := certtest.NewDir(t, ca, ca.Issue(t, "nobody"))
	return func(user string) kafkaevent.Config {
		return kafkaevent.Config{
			Brokers: cluster.ListenAddrs(), TLSEnabled: true, TLSCAFile: files.CA(),
			SASLMechanism: "SCRAM-SHA-512", SASLUsername: user, SASLPassword: secret.Of("pass word"),
		}
	}
}

func users(t *testing.T, more ...string) (all []kafkaUser) {
	t.Helper()
	text, err := os.ReadFile("kafka/users.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for documents := yaml.NewDecoder(strings.NewReader(strings.Join(append(more, string(text)), "\n---\n"))); ; {
		var user kafkaUser
		if err := documents.Decode(&user); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if user.Spec.Authentication.Type != "scram-sha-512" {
			t.Errorf("%s logs in by %q", user.Metadata.Name, user.Spec.Authentication.Type)
		}
		all = append(all, user)
	}
}

// rights returns the user's rights as Strimzi's operator grants them at the broker.
func rights(t *testing.T, user kafkaUser) (acls []kfake.ACL) {
	t.Helper()
	for _, acl := range user.Spec.Authorization.ACLs {
		resource, err := kmsg.ParseACLResourceType(acl.Resource.Type)
		if err != nil {
			t.Fatal(err)
		}
		pattern, name := kmsg.ACLResourcePatternTypeLiteral, acl.Resource.Name
		if acl.Resource.PatternType == "prefix" {
			pattern = kmsg.ACLResourcePatternTypePrefixed
		}
		if acl.Resource.Type == "cluster" {
			name = "kafka-cluster"
		}
		for _, operation := range acl.Operations {
			op, err := kmsg.ParseACLOperation(operation)
			if err != nil {
				t.Fatal(err)
			}
			acls = append(acls, kfake.ACL{Resource: resource, Name: name, Pattern: pattern, Operation: op, Allow: true})
		}
	}
	return acls
}

// createTopics does what the Job topics does.
func createTopics(t *testing.T, as func(string) kafkaevent.Config) {
	t.Helper()
	topics := jobevent.Topics([]string{"default", "reports"})
	if err := kafkaevent.CreateTopics(t.Context(), as("jobweaver-kafka-topics"), topics); err != nil {
		t.Fatal(err)
	}
}

func TestAFunctionPublishesAndConsumesItsOwnTopics(t *testing.T) {
	t.Parallel()
	as := kafkaOf(t)
	createTopics(t, as)
	producer, err := kafkaevent.NewProducer(as("jobweaver-kafka-cron"))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	item, err := jobevent.New(jobevent.TypeCreated, jobevent.Meta{Function: "cron", ID: "1"}, jobevent.Created{})
	if err != nil {
		t.Fatal(err)
	}
	if err := producer.Publish(t.Context(), []event.Event{item.Alone()}); err != nil {
		t.Fatal(err)
	}
	consumer, err := kafkaevent.NewBatchConsumer(as("jobweaver-kafka-ingest"), "jobweaver-ingest", []string{jobevent.TopicCreated}, 10)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	received := false
	if err := consumer.Run(ctx, func(context.Context, []*sarama.ConsumerMessage) (func() error, error) {
		received = true
		stop()
		return nil, nil
	}); err != nil || !received {
		t.Errorf("received: %v, %v", received, err)
	}
}

// The command of docs/production.md makes users who may use the topics of their installation and no others.
func TestASecondInstallationHasUsersOfItsOwn(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/production.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`sed -E .*/users\.yaml`).FindString(string(page))
	sed := exec.CommandContext(t.Context(), "sh", "-c", command)
	sed.Dir = "../.."
	text, err := sed.Output()
	if err != nil {
		t.Fatalf("%q: %v", command, err)
	}
	as := kafkaOf(t, string(text))
	createTopics(t, as)
	shop := func(user string) kafkaevent.Config {
		cfg := as("shop-" + user)
		cfg.Installation = "shop"
		return cfg
	}
	createTopics(t, shop)
	item, err := jobevent.New(jobevent.TypeCreated, jobevent.Meta{Function: "cron", ID: "1"}, jobevent.Created{})
	if err != nil {
		t.Fatal(err)
	}
	stranger := as("shop-jobweaver-kafka-cron")
	for who, cfg := range map[string]kafkaevent.Config{"its own": shop("jobweaver-kafka-cron"), "the other": stranger} {
		producer, err := kafkaevent.NewProducer(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer producer.Close()
		if err := producer.Publish(t.Context(), []event.Event{item.Alone()}); (err == nil) != (who == "its own") {
			t.Errorf("to the topic of %s installation: %v", who, err)
		}
	}
	consumer, err := kafkaevent.NewBatchConsumer(shop("jobweaver-kafka-ingest"), "jobweaver-ingest", []string{jobevent.TopicCreated}, 10)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	received := false
	if err := consumer.Run(ctx, func(context.Context, []*sarama.ConsumerMessage) (func() error, error) {
		received = true
		stop()
		return nil, nil
	}); err != nil || !received {
		t.Errorf("received: %v, %v", received, err)
	}
}

func TestTheGatewayReadsTheLagOfAllFunctions(t *testing.T) {
	t.Parallel()
	as := kafkaOf(t)
	createTopics(t, as)
	consumer, err := kafkaevent.NewBatchConsumer(as("jobweaver-kafka-projection"), "jobweaver-projection",
		[]string{jobevent.TopicStatuses, jobevent.TopicAttemptLog}, 10)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- consumer.Run(ctx, func(context.Context, []*sarama.ConsumerMessage) (func() error, error) { return nil, nil })
	}()
	lags := kafkaevent.NewLags(as("jobweaver-kafka-gateway"))
	defer lags.Close()
	for {
		read, err := lags.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(read) == 2 {
			if read[1].Function != "projection" || read[1].Topic != jobevent.TopicStatuses || read[1].Members != 1 || read[1].Records != 0 {
				t.Errorf("read %+v", read)
			}
			break
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	others := kafkaevent.NewLags(as("jobweaver-kafka-ingest"))
	defer others.Close()
	if read, err := others.Read(t.Context()); err == nil && len(read) > 0 {
		t.Errorf("ingest reads the lag of others: %+v", read)
	}
}

func TestTheGatewayCreatesAndDeletesTheTopicsOfQueuesOnly(t *testing.T) {
	t.Parallel()
	as := kafkaOf(t)
	createTopics(t, as)
	topics := funchost.NewQueueTopics(funchost.Config{Kafka: as("jobweaver-kafka-gateway")})
	if err := errors.Join(topics.Create(t.Context(), "mail"), topics.Delete(t.Context(), "mail")); err != nil {
		t.Error(err)
	}
	if err := topics.Delete(t.Context(), "default"); err == nil {
		t.Error("it may delete the topic of the default queue")
	}
	if err := kafkaevent.DeleteTopic(t.Context(), as("jobweaver-kafka-gateway"), jobevent.TopicCreated, "jobweaver-runjob-x"); err == nil {
		t.Error("it may delete another topic")
	}
}

func TestOnlyTheOperatorEmptiesTopics(t *testing.T) {
	t.Parallel()
	as := kafkaOf(t)
	topics := jobevent.Topics(nil)
	createTopics(t, as)
	for _, user := range []string{"jobweaver-kafka-outcome", "jobweaver-kafka-topics"} {
		if err := kafkaevent.EmptyTopics(t.Context(), as(user), topics); err == nil {
			t.Errorf("%s may empty topics", user)
		}
	}
	if err := kafkaevent.EmptyTopics(t.Context(), as("jobweaver-operator"), topics); err != nil {
		t.Error(err)
	}
}

func TestEachUserOfKafkaIsRefusedWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	as := kafkaOf(t)
	createTopics(t, as)
	for name, test := range map[string]struct {
		user    string
		refused func(t *testing.T, client sarama.Client) error
	}{
		"KEDA reads no event":                          {"keda", reads(jobevent.TopicRun)},
		"KEDA publishes nothing":                       {"keda", publishes(jobevent.TopicRun)},
		"Knative does not read what workers get":       {"knative", reads(jobevent.TopicRun)},
		"Knative publishes no outcome past the Broker": {"knative", publishes(jobevent.TopicEnded)},
		"functions stay out of Knative's topics":       {"jobweaver-kafka-outcome", publishes("knative-broker-jobweaver-jobweaver")},
		// A worker under an attacker's control.
		"a worker reads no new job":                    {"jobweaver-kafka-runjob", reads(jobevent.TopicCreated)},
		"a worker publishes no status":                 {"jobweaver-kafka-runjob", publishes(jobevent.TopicStatus)},
		"a worker publishes no command":                {"jobweaver-kafka-runjob", publishes(jobevent.TopicCommand)},
		"a worker publishes no order":                  {"jobweaver-kafka-runjob", publishes(jobevent.TopicRun)},
		"a gateway publishes no status":                {"jobweaver-kafka-gateway", publishes(jobevent.TopicStatus)},
		"a projection reads no order":                  {"jobweaver-kafka-projection", reads(jobevent.TopicRun)},
		"who makes topics reads none":                  {"jobweaver-kafka-topics", reads(jobevent.TopicStatuses)},
		"the user of the Job topics publishes nothing": {"jobweaver-kafka-topics", publishes(jobevent.TopicEnded)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings, err := as(test.user).Sarama()
			if err != nil {
				t.Fatal(err)
			}
			settings.Metadata.Retry.Max, settings.Producer.Retry.Max = 0, 0
			client, err := sarama.NewClient(as(test.user).Brokers, settings)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Close() }()
			if err := test.refused(t, client); err == nil || !strings.Contains(err.Error(), "not authorized") {
				t.Errorf("it was not refused: %v", err)
			}
		})
	}
}

func publishes(topic string) func(*testing.T, sarama.Client) error {
	return func(t *testing.T, client sarama.Client) error {
		t.Helper()
		producer, err := sarama.NewSyncProducerFromClient(client)
		if err != nil {
			return err
		}
		defer func() { _ = producer.Close() }()
		_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("x")})
		return err
	}
}

func reads(topic string) func(*testing.T, sarama.Client) error {
	return func(t *testing.T, client sarama.Client) error {
		t.Helper()
		consumer, err := sarama.NewConsumerFromClient(client)
		if err != nil {
			return err
		}
		partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
		if err != nil {
			return err
		}
		defer func() { _ = partition.Close() }()
		select {
		case err := <-partition.Errors():
			return err
		case <-time.After(10 * time.Second):
			return errors.New("no word of refusal")
		}
	}
}
