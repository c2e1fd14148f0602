package manifests

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
)

func TestTheRelayIsAComponentOfEachWay(t *testing.T) {
	t.Parallel()
	known := functions(t)["relay"]
	for _, way := range []string{"knative", "knative/overlays/kafka-direct", "knative/overlays/production"} {
		objects := with(t, filepath.Join(root, way), filepath.Join(root, "knative/components/relay"))
		workloads, err := Workloads(objects)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, w := range workloads {
			if w.Function() != "relay" {
				continue
			}
			found++
			for _, name := range w.Own() {
				if !known.Knows(name) {
					t.Errorf("%s: it is given %s, which it does not read", way, name)
				}
			}
			if _, there := Named(objects, "ServiceAccount", w.Pod.ServiceAccountName); !there || w.Name != "relay" {
				t.Errorf("%s: %s runs as %q", way, w, w.Pod.ServiceAccountName)
			}
			if !strings.Contains(w.Pod.Containers[0].Image, ":") {
				t.Errorf("%s: runs %s", way, w.Pod.Containers[0].Image)
			}
		}
		if found != 1 {
			t.Errorf("%s: %d relays", way, found)
		}
		policies := Of[networkingv1.NetworkPolicy](objects)
		relay := Peer{Namespace: "jobweaver", Labels: map[string]string{
			"app.kubernetes.io/name": "jobweaver", "app.kubernetes.io/component": "relay",
		}}
		users := Peer{Address: netip.MustParseAddr("93.184.216.34")}
		if !Reaches(policies, relay, users, 6432) || Reaches(policies, relay, metadata, 80) {
			t.Errorf("%s: it reaches a database elsewhere: %v, the cloud's own address: %v", way,
				Reaches(policies, relay, users, 6432), Reaches(policies, relay, metadata, 80))
		}
	}
}
