package manifests

import (
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// scaledObject has the fields of KEDA's ScaledObject that depend on the code.
type scaledObject struct {
	Spec struct {
		ScaleTargetRef  struct{ Name string }
		MinReplicaCount *int
		MaxReplicaCount int
		Triggers        []struct {
			Type     string
			Metadata map[string]string
		}
	}
}

func scaledObjects(t *testing.T, objects []Object) map[string]scaledObject {
	t.Helper()
	found := map[string]scaledObject{}
	for _, object := range objects {
		if object.Kind != "ScaledObject" {
			continue
		}
		var scaled scaledObject
		if err := yaml.Unmarshal(object.YAML, &scaled); err != nil {
			t.Fatal(err)
		}
		found[object.Name] = scaled
	}
	return found
}

// The scheduler sends a queue's workers no more than they have slots for: a threshold at or above POOL_SIZE would never
// ask for a second worker, however many jobs wait.
func TestAFullWorkerAsksForAnother(t *testing.T) {
	eachWay(t, func(t *testing.T, objects []Object, workloads []Workload) {
		scaled, there := scaledObjects(t, objects)["runjob"]
		if !there {
			return // an overlay for a machine that has room for one
		}
		for _, w := range workloads {
			if w.Function() != "runjob" {
				continue
			}
			pool, err := strconv.Atoi(w.Env()["POOL_SIZE"])
			if err != nil {
				t.Fatal(err)
			}
			for _, trigger := range scaled.Spec.Triggers {
				threshold, err := strconv.Atoi(trigger.Metadata["lagThreshold"])
				// Kubernetes does not scale up for less than a tenth above the target.
				if err != nil || float64(pool) < 1.1*float64(threshold) {
					t.Errorf("a worker of %d slots asks for another at %d attempts, %v", pool, threshold, err)
				}
			}
			for _, queue := range queuesOf(t, workloads) {
				if queue == "pull" { // pull workers provide its slots, so a further copy would add none
					continue
				}
				if !scalesOn(scaled, jobevent.RunTopic(queue), "jobweaver-runjob-"+queue) {
					t.Errorf("no trigger scales a worker for the queue %s", queue)
				}
			}
			if scaled.Spec.MaxReplicaCount > jobevent.RunPartitions {
				t.Errorf("%d workers would share %d partitions", scaled.Spec.MaxReplicaCount, jobevent.RunPartitions)
			}
		}
	})
}

func scalesOn(scaled scaledObject, topic, group string) bool {
	for _, trigger := range scaled.Spec.Triggers {
		if m := trigger.Metadata; m["topic"] == topic && m["consumerGroup"] == group && m["offsetResetPolicy"] == "earliest" {
			return true
		}
	}
	return false
}

// A function on its topics is scaled by how far it is behind on each of them, and by nothing else.
func TestFunctionsOnTopicsAreScaledByTheirOwnLag(t *testing.T) {
	eachWay(t, func(t *testing.T, objects []Object, workloads []Workload) {
		known, scaled := functions(t), scaledObjects(t, objects)
		partitions := map[string]int{}
		for _, topic := range jobevent.Topics(queuesOf(t, workloads)) {
			partitions[topic.Name] = int(topic.Partitions)
		}
		for _, w := range workloads {
			f := known[w.Function()]
			if w.Kind != "Deployment" || len(f.Topics) == 0 {
				continue
			}
			own, there := scaled[w.Name]
			if !there || own.Spec.ScaleTargetRef.Name != w.Name || len(own.Spec.Triggers) != len(f.Topics) {
				t.Errorf("%s is scaled by %+v", w, own)
				continue
			}
			most := 0
			for _, topic := range f.Topics {
				most = max(most, partitions[topic])
				if !scalesOn(own, topic, "jobweaver-"+f.Name) {
					t.Errorf("%s is not scaled by %s", w, topic)
				}
			}
			if own.Spec.MaxReplicaCount > most {
				t.Errorf("%d of %s would share %d partitions", own.Spec.MaxReplicaCount, w.Name, most)
			}
			if f.Tick != nil && (own.Spec.MinReplicaCount == nil || *own.Spec.MinReplicaCount < 1) {
				t.Errorf("%s has a clock and may go to zero", w)
			}
		}
	})
}

// A function that scales to zero keeps nothing in memory and gets no notifications from the database. Only requests
// wake it.
func TestOnlyWhatIsCalledForEverythingGoesToZero(t *testing.T) {
	eachWay(t, func(t *testing.T, _ []Object, workloads []Workload) {
		known := functions(t)
		for _, w := range workloads {
			if !w.OnKnative {
				continue
			}
			fewest, most, err := w.Scale()
			if err != nil || most < 1 {
				t.Errorf("%s has the bounds %v: %v", w, w.Annotations, err)
			}
			f := known[w.Function()]
			toZero := f.Tick == nil && f.Run == nil && !f.KafkaOnly
			warm := strings.HasSuffix(t.Name(), "/production") // in production a job must not wait for a pod to start
			if toZero != (fewest == 0) && (!toZero || !warm) {
				t.Errorf("%s has at least %d pods", w, fewest)
			}
			if f.KafkaOnly && w.Function() != "gateway" {
				t.Errorf("%s takes from Kafka itself: Knative would stop it", w)
			}
		}
	})
}
