package manifests

import (
	"errors"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/jobweaver/jobweaver/shared/outbound"
)

// An operator who allows the network of all Services for callbacks must not thereby allow callbacks to JobWeaver's own
// Services.
func TestNoWayLetsAJobCallOurOwnServices(t *testing.T) {
	eachWay(t, func(t *testing.T, _ []Object, workloads []Workload) {
		for _, w := range workloads {
			if w.Name != "notify" && w.Name != "runjob" {
				continue
			}
			client, err := outbound.New(outbound.Config{
				Allow: []string{"0.0.0.0/0", "::/0"}, Deny: strings.Split(w.Env()["OUTBOUND_DENY"], ","),
			})
			if err != nil {
				t.Fatalf("%s: %v", w, err)
			}
			defer client.Close()
			for _, host := range []string{
				"gateway", "gateway.jobweaver", "gateway.jobweaver.svc", "gateway.jobweaver.svc.cluster.local",
				"runjob.jobweaver.svc.cluster.local.",
			} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := client.Do(r, 1); !errors.Is(err, outbound.ErrRefused) {
					t.Errorf("%s calls %s: %v", w, host, err)
				}
			}
		}
	})
}

// The forwarder has the shop's key, and adds it to every request that it gets.
func TestOnlyTheBrokerReachesTheForwarderOfTheExample(t *testing.T) {
	t.Parallel()
	policies := Of[networkingv1.NetworkPolicy](build(t, filepath.Join(root, "knative/examples/any-event")))
	forwarder := Peer{Namespace: "shop", Labels: map[string]string{"app.kubernetes.io/name": "jobweaver-forwarder"}}
	neighbour := Peer{Namespace: "shop", Labels: map[string]string{"app.kubernetes.io/name": "order"}}
	for name, c := range map[string]struct {
		from Peer
		want bool
	}{
		"the Broker": {sender, true}, "its ingress": {receiver, false}, "a pod beside it": {neighbour, false},
		"a pod elsewhere": {stranger, false}, "the world": {internet, false},
	} {
		if got := Reaches(policies, c.from, forwarder, 8080); got != c.want {
			t.Errorf("%s reaches the forwarder: %v", name, got)
		}
	}
}

// In production each owner's requests are limited, as SECURITY.md promises, without a setting by the operator.
func TestInProductionAnOwnerHasLimits(t *testing.T) {
	t.Parallel()
	workloads, err := Workloads(production(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range workloads {
		if w.Name != "gateway" && w.Name != "cron" {
			continue
		}
		for _, name := range []string{"RATE_LIMIT", "RATE_LIMIT_JOBS"} {
			if rate, err := strconv.ParseFloat(w.Env()[name], 64); err != nil || rate <= 0 {
				t.Errorf("%s has %s=%q", w, name, w.Env()[name])
			}
		}
	}
}
