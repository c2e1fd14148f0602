package manifests

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"knative.dev/eventing/pkg/apis/eventing/v1beta3"
	"sigs.k8s.io/yaml"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// kafkaSink has the fields of a KafkaSink that depend on the code.
type kafkaSink struct {
	Spec struct {
		Topic            string   `json:"topic"`
		BootstrapServers []string `json:"bootstrapServers"`
		ContentMode      string   `json:"contentMode"`
	} `json:"spec"`
}

func sinks(t *testing.T, objects []Object) map[string]kafkaSink {
	t.Helper()
	found := map[string]kafkaSink{}
	for _, object := range objects {
		if object.Kind != "KafkaSink" {
			continue
		}
		var sink kafkaSink
		if err := yaml.Unmarshal(object.YAML, &sink); err != nil {
			t.Fatal(err)
		}
		found[object.Name] = sink
	}
	return found
}

// eachBrokerWay runs a test on each kustomization that has a Broker.
func eachBrokerWay(t *testing.T, test func(t *testing.T, objects []Object, workloads []Workload)) {
	t.Helper()
	eachWay(t, func(t *testing.T, objects []Object, workloads []Workload) {
		if len(Of[eventingv1.Broker](objects)) > 0 {
			test(t, objects, workloads)
		}
	})
}

// typesOf returns the event types that a Trigger lets through, and the queue if it lets through only the run events of
// one.
func typesOf(t *testing.T, trigger *eventingv1.Trigger) (types []string, queue string) {
	t.Helper()
	filters := trigger.Spec.Filters
	if len(filters) == 1 && len(filters[0].Any) > 0 {
		filters = filters[0].Any
	}
	for _, filter := range filters {
		if len(filter.Exact) == 0 || filter.Exact["type"] == "" {
			t.Fatalf("Trigger %s does not choose by exact types", trigger.Name)
		}
		types = append(types, filter.Exact["type"])
		queue = filter.Exact["queue"]
		if len(filter.Exact) > 2 || len(filter.Exact) == 2 && queue == "" {
			t.Errorf("Trigger %s chooses by %v", trigger.Name, filter.Exact)
		}
	}
	slices.Sort(types)
	return types, queue
}

// A function on Kafka consumes its topics. Behind the Broker it must get the same types, no more and no less.
func TestEachFunctionGetsFromTriggersTheTypesOfItsTopics(t *testing.T) {
	eachBrokerWay(t, func(t *testing.T, objects []Object, _ []Workload) {
		topics, err := TopicsOf(jobevent.Types()...)
		if err != nil {
			t.Fatal(err)
		}
		consumed := map[string][]string{}
		for _, trigger := range Of[eventingv1.Trigger](objects) {
			if to := trigger.Spec.Subscriber.Ref; to.Kind == "Service" {
				types, _ := typesOf(t, trigger)
				consumed[to.Name] = append(consumed[to.Name], types...)
			}
		}
		for name, f := range functions(t) {
			var wanted []string
			for _, typ := range jobevent.Types() {
				if topics[typ] == jobevent.TopicStatus || f.Skips != nil && f.Skips(topics[typ], typ) {
					continue
				}
				if slices.Contains(f.Topics, topics[typ]) {
					wanted = append(wanted, typ)
				}
			}
			slices.Sort(consumed[name])
			if !slices.Equal(consumed[name], wanted) {
				t.Errorf("%s gets %q from the Broker, and %q from its topics", name, consumed[name], wanted)
			}
			delete(consumed, name)
		}
		if len(consumed) > 0 {
			t.Errorf("a consumer is no function: %v", consumed)
		}
	})
}

func TestEveryTypeHasAConsumer(t *testing.T) {
	eachBrokerWay(t, func(t *testing.T, objects []Object, workloads []Workload) {
		topics, err := TopicsOf(jobevent.Types()...)
		if err != nil {
			t.Fatal(err)
		}
		sinks, consumed, queues := sinks(t, objects), map[string]bool{}, map[string]bool{}
		for _, trigger := range Of[eventingv1.Trigger](objects) {
			types, queue := typesOf(t, trigger)
			for _, typ := range types {
				consumed[typ] = true
			}
			to := trigger.Spec.Subscriber.Ref
			if to.Kind != "KafkaSink" {
				continue
			}
			for _, typ := range types {
				want := topics[typ]
				if typ == jobevent.TypesRun {
					want, queues[queue] = jobevent.RunTopic(queue), true
				}
				if sinks[to.Name].Spec.Topic != want {
					t.Errorf("Trigger %s brings %s to the topic %q, not %q", trigger.Name, typ, sinks[to.Name].Spec.Topic, want)
				}
			}
		}
		for _, typ := range jobevent.Types() {
			// Behind the Broker the statuses of single jobs are for Triggers of users: projection gets them together.
			if consumed[typ] == (topics[typ] == jobevent.TopicStatus) {
				t.Errorf("%s is consumed: %t", typ, consumed[typ])
			}
		}
		for _, queue := range queuesOf(t, workloads) {
			if !queues[queue] {
				t.Errorf("no Trigger brings runs of the queue %s to its topic", queue)
			}
		}
	})
}

func queuesOf(t *testing.T, workloads []Workload) []string {
	t.Helper()
	for _, w := range workloads {
		if w.Name == "topics" {
			return strings.Split(w.Env()["QUEUES"], ",")
		}
	}
	t.Fatal("no Job makes the topics")
	return nil
}

func TestEverySinkIsATopicThatIsMadeAndKeepsEventsAsWorkersReadThem(t *testing.T) {
	eachBrokerWay(t, func(t *testing.T, objects []Object, workloads []Workload) {
		made := map[string]bool{}
		for _, topic := range jobevent.Topics(queuesOf(t, workloads)) {
			made[topic.Name] = true
		}
		for name, sink := range sinks(t, objects) {
			if !made[sink.Spec.Topic] || sink.Spec.ContentMode != "binary" {
				t.Errorf("KafkaSink %s writes %s events to %q", name, sink.Spec.ContentMode, sink.Spec.Topic)
			}
		}
	})
}

func TestEveryTriggerTriesAgainAndLosesNothingUnseen(t *testing.T) {
	eachBrokerWay(t, func(t *testing.T, objects []Object, _ []Workload) {
		sinks := sinks(t, objects)
		for _, trigger := range Of[eventingv1.Trigger](objects) {
			d := trigger.Spec.Delivery
			if d == nil || d.Retry == nil || *d.Retry < 5 || d.BackoffPolicy == nil || d.BackoffDelay == nil || d.Timeout == nil {
				t.Errorf("Trigger %s delivers by %+v", trigger.Name, d)
				continue
			}
			if d.DeadLetterSink == nil || d.DeadLetterSink.Ref == nil ||
				sinks[d.DeadLetterSink.Ref.Name].Spec.Topic != jobevent.TopicDeadLetter {
				t.Errorf("Trigger %s drops events that are refused", trigger.Name)
			}
			if brokers := Of[eventingv1.Broker](objects); trigger.Spec.Broker != brokers[0].Name {
				t.Errorf("Trigger %s is one of the Broker %s", trigger.Name, trigger.Spec.Broker)
			}
		}
	})
}

func TestEverySubscriberIsThere(t *testing.T) {
	eachBrokerWay(t, func(t *testing.T, objects []Object, _ []Workload) {
		for _, trigger := range Of[eventingv1.Trigger](objects) {
			to := trigger.Spec.Subscriber.Ref
			if object, there := Named(objects, to.Kind, to.Name); !there || object.APIVersion != to.APIVersion {
				t.Errorf("Trigger %s brings to %s %s, which is not there", trigger.Name, to.Kind, to.Name)
			}
		}
	})
}

func TestEveryEventTypeIsInTheCatalogueOnce(t *testing.T) {
	eachBrokerWay(t, func(t *testing.T, objects []Object, _ []Workload) {
		var listed []string
		for _, entry := range Of[v1beta3.EventType](objects) {
			for _, attribute := range entry.Spec.Attributes {
				if attribute.Name != "type" {
					continue
				}
				listed = append(listed, attribute.Value)
			}
			if at := entry.Spec.Reference; at == nil || at.Kind != "Broker" {
				t.Errorf("EventType %s is of no Broker", entry.Name)
			}
		}
		slices.Sort(listed)
		want := append(jobevent.Types(), jobevent.TypeSubmit)
		slices.Sort(want)
		if !slices.Equal(listed, want) {
			t.Errorf("the catalogue lists %q", listed)
		}
	})
}

// Functions publish to the Broker of this kustomization, and all objects that connect to Kafka connect to the same one.
func TestAllAgreeWhereTheBrokerAndKafkaAre(t *testing.T) {
	eachWay(t, func(t *testing.T, objects []Object, workloads []Workload) {
		brokers := Of[eventingv1.Broker](objects)
		kafka := workloads[0].Env()["KAFKA_BROKERS"]
		for _, w := range workloads {
			sink := ""
			if len(brokers) > 0 {
				sink = "http://kafka-broker-ingress.knative-eventing.svc.cluster.local/" + filepath.Join(brokers[0].Namespace, brokers[0].Name)
			}
			if env := w.Env(); env["K_SINK"] != sink || env["KAFKA_BROKERS"] != kafka || kafka == "" {
				t.Errorf("%s publishes its events to %q, and Kafka is at %q", w, env["K_SINK"], env["KAFKA_BROKERS"])
			}
		}
		for name, sink := range sinks(t, objects) {
			if !slices.Equal(sink.Spec.BootstrapServers, []string{kafka}) {
				t.Errorf("KafkaSink %s looks for Kafka at %q", name, sink.Spec.BootstrapServers)
			}
		}
		for name, scaled := range scaledObjects(t, objects) {
			for _, trigger := range scaled.Spec.Triggers {
				if trigger.Type == "kafka" && trigger.Metadata["bootstrapServers"] != kafka {
					t.Errorf("ScaledObject %s looks for Kafka at %q", name, trigger.Metadata["bootstrapServers"])
				}
			}
		}
		for _, broker := range brokers {
			checkBrokerConfig(t, objects, broker, kafka, workloads[0].Env()["KAFKA_REPLICATION_FACTOR"])
		}
	})
}

func checkBrokerConfig(t *testing.T, objects []Object, broker *eventingv1.Broker, kafka, replicas string) {
	t.Helper()
	object, there := Named(objects, "ConfigMap", broker.Spec.Config.Name)
	if !there {
		t.Fatalf("there is no ConfigMap %s for the Broker", broker.Spec.Config.Name)
	}
	config := object.Typed.(*corev1.ConfigMap).Data
	if config["bootstrap.servers"] != kafka || config["default.topic.replication.factor"] != replicas {
		made, _ := json.Marshal(config)
		t.Errorf("the Broker's topic is made by %s", made)
	}
}
