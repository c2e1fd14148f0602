package manifests

import (
	"maps"
	"net/netip"
	"path/filepath"
	"strconv"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// production returns the objects of a production cluster: the overlay and the servers that it needs.
func production(t *testing.T) []Object {
	t.Helper()
	var all []Object
	for _, folder := range []string{"knative/overlays/production", "infra/kubernetes/kafka", "infra/kubernetes/postgres"} {
		all = append(all, build(t, filepath.Join(root, folder))...)
	}
	return all
}

// pod returns a pod of a workload, with the label that Knative adds.
func pod(w Workload) Peer {
	labels := maps.Clone(w.Labels)
	if w.OnKnative {
		labels["serving.knative.dev/service"] = w.Name
	}
	return Peer{Namespace: w.Namespace, Labels: labels}
}

// brokersPolicy is the network policy that Strimzi makes from the listener's networkPolicyPeers.
func brokersPolicy(t *testing.T, objects []Object) *networkingv1.NetworkPolicy {
	t.Helper()
	kafka, there := Named(objects, "Kafka", "kafka")
	if !there {
		t.Fatal("there is no Kafka")
	}
	var spec struct {
		Spec struct {
			Kafka struct {
				Listeners []struct {
					Port               int32
					NetworkPolicyPeers []networkingv1.NetworkPolicyPeer
				}
			}
		}
	}
	if err := yaml.Unmarshal(kafka.YAML, &spec); err != nil {
		t.Fatal(err)
	}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: kafka.Namespace}}
	policy.Spec.PodSelector.MatchLabels = broker.Labels
	policy.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	for _, listener := range spec.Spec.Kafka.Listeners {
		port := intstr.FromInt32(listener.Port)
		policy.Spec.Ingress = append(policy.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{
			From: listener.NetworkPolicyPeers, Ports: []networkingv1.NetworkPolicyPort{{Port: &port}},
		})
	}
	return policy
}

var (
	database = Peer{Namespace: "jobweaver", Labels: map[string]string{"cnpg.io/cluster": "postgres"}}
	broker   = Peer{Namespace: "jobweaver", Labels: map[string]string{"strimzi.io/cluster": "kafka"}}
	receiver = Peer{Namespace: "knative-eventing", Labels: map[string]string{"app": "kafka-broker-receiver"}}
	sender   = Peer{Namespace: "knative-eventing", Labels: map[string]string{"app": "kafka-broker-dispatcher"}}
	serving  = Peer{Namespace: "knative-serving", Labels: map[string]string{"app": "activator"}}
	operator = Peer{Namespace: "cnpg-system", Labels: map[string]string{"app.kubernetes.io/name": "cloudnative-pg"}}
	scaler   = Peer{Namespace: "keda", Labels: map[string]string{"app": "keda-operator"}}
	scraper  = Peer{Namespace: "monitoring", Labels: map[string]string{"app.kubernetes.io/name": "prometheus"}}
	stranger = Peer{Namespace: "shop", Labels: map[string]string{"app.kubernetes.io/name": "jobweaver"}}
	internet = Peer{Address: netip.MustParseAddr("93.184.216.34")}
	metadata = Peer{Address: netip.MustParseAddr("169.254.169.254")}
	nodesDNS = Peer{Address: netip.MustParseAddr("169.254.20.10")}
	someDNS  = Peer{Namespace: "openshift-dns", Labels: map[string]string{"app": "dns"}}
)

// metricsPort is METRICS_PORT, to which the policies admit Prometheus.
const metricsPort = 9464

func TestInProductionEachPodReachesOnlyWhatItNeeds(t *testing.T) {
	t.Parallel()
	objects := production(t)
	policies := append(Of[networkingv1.NetworkPolicy](objects), brokersPolicy(t, objects))
	workloads, err := Workloads(objects)
	if err != nil {
		t.Fatal(err)
	}
	check := func(want bool, whoFrom string, from Peer, whoTo string, to Peer, port int32) {
		if got := Reaches(policies, from, to, port); got != want {
			t.Errorf("%s reaches %s at %d: %v", whoFrom, whoTo, port, got)
		}
	}
	callsOut := map[string]bool{"gateway": true, "notify": true, "runjob": true}
	for _, w := range workloads {
		_, stores := w.Env()["DATABASE_URL_FILE"]
		own := pod(w)
		if stores {
			check(true, w.Name, own, "its database", database, 5432)
		}
		check(true, w.Name, own, "the Broker", receiver, 8080)
		check(callsOut[w.Name], w.Name, own, "the world", internet, 443)
		check(false, w.Name, own, "the cloud's own address", metadata, 80)
		check(true, w.Name, own, "its node's DNS", nodesDNS, 53)
		check(true, w.Name, own, "the cluster's DNS", someDNS, 5353)
		if !w.OnKnative {
			check(true, w.Name, own, "Kafka", broker, 9093)
		} else {
			check(true, "Knative", serving, w.Name, own, 8012)
			check(false, "a stranger", stranger, w.Name, own, 8012)
		}
		if w.Kind != "Job" {
			check(true, "Prometheus", scraper, w.Name+"'s metrics", own, metricsPort)
			check(false, "a stranger", stranger, w.Name+"'s metrics", own, metricsPort)
			check(false, "Prometheus", scraper, w.Name+"'s events", own, 8080)
			check(false, "a stranger", stranger, w.Name, own, 8080)
			if port := w.Env()["METRICS_PORT"]; port != strconv.Itoa(metricsPort) {
				t.Errorf("%s has its metrics at %q", w.Name, port)
			}
		}
	}
	for _, port := range []int32{5432, 8000} {
		check(true, "PostgreSQL", database, "itself", database, port)
		check(true, "its operator", operator, "PostgreSQL", database, port)
	}
	check(true, "PostgreSQL", database, "its backups", internet, 443)
	check(true, "Prometheus", scraper, "PostgreSQL", database, 9187)
	check(true, "Kafka", broker, "Kubernetes", internet, 443)
	check(true, "Knative", sender, "Kafka", broker, 9093)
	check(true, "KEDA", scaler, "Kafka", broker, 9093)
	check(false, "a stranger", stranger, "Kafka", broker, 9093)
	check(false, "a stranger", stranger, "PostgreSQL", database, 5432)
	check(false, "Prometheus", scraper, "PostgreSQL", database, 5432)
}

// A budget that selects no pods protects nothing, and a budget that allows no disruption stops every upgrade of a node.
func TestEveryDisruptionBudgetSelectsPodsAndAllowsADisruption(t *testing.T) {
	t.Parallel()
	for _, folder := range ways(t) {
		objects := build(t, folder)
		workloads, err := Workloads(objects)
		if err != nil {
			t.Fatal(err)
		}
		for _, budget := range Of[policyv1.PodDisruptionBudget](objects) {
			found := false
			for _, w := range workloads {
				found = found || w.Kind != "Job" && selects(budget.Spec.Selector, pod(w).Labels)
			}
			if !found {
				t.Errorf("%s: the budget %s selects no pod", folder, budget.Name)
			}
			if allowed := budget.Spec.MaxUnavailable; allowed == nil || allowed.IntVal < 1 {
				t.Errorf("%s: the budget %s lets go %v", folder, budget.Name, allowed)
			}
		}
	}
}
