package manifests

import (
	"testing"
	"time"

	"github.com/rickb777/date/period"
	appsv1 "k8s.io/api/apps/v1"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/pgpool"
)

const (
	// quiet is how long Knative's queue-proxy waits for a last request before it stops the function
	// (drainSleepDuration in its pkg/queue/sharedmain). The pod's grace period runs meanwhile.
	quiet = 30 * time.Second
	// lastWord is how long a process may take to end after SHUTDOWN_GRACE.
	lastWord = time.Second
	// lastWords is how long a worker may take after GRACE: until its handlers have returned, their outcomes are written
	// and published, and its last heartbeat is published.
	lastWords = 4 * time.Second
)

func TestNoFunctionIsKilledWhileItStops(t *testing.T) {
	eachWay(t, func(t *testing.T, _ []Object, workloads []Workload) {
		for _, w := range workloads {
			grace := duration(t, w, "SHUTDOWN_GRACE", 30*time.Second)
			needs := grace + duration(t, w, "SHUTDOWN_DELAY", time.Second) + lastWord
			var has time.Duration
			switch w.Kind {
			case "Service":
				needs += quiet
				has = time.Duration(w.TimeoutSeconds) * time.Second
			case "Deployment":
				has = time.Duration(*w.Typed.(*appsv1.Deployment).Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
			default:
				continue
			}
			if has < needs {
				t.Errorf("%s needs %s to stop, and is killed after %s", w, needs, has)
			}
			if w.Function() == "runjob" && grace < duration(t, w, "GRACE", 25*time.Second)+lastWords {
				t.Errorf("%s has no time for its last words after GRACE", w)
			}
		}
	})
}

func duration(t *testing.T, w Workload, setting string, otherwise time.Duration) time.Duration {
	t.Helper()
	d, err := w.Duration(setting, otherwise)
	if err != nil {
		t.Fatalf("%s: %s: %v", w, setting, err)
	}
	return d
}

// A caller that gives up before the server that it calls has wasted the server's work. So the limits must rise from the
// inside to the outside: statement, publishing, the Trigger's delivery, Knative.
func TestACallerWaitsLongerThanTheServerThatItCalls(t *testing.T) {
	eachBrokerWay(t, func(t *testing.T, objects []Object, workloads []Workload) {
		for _, trigger := range Of[eventingv1.Trigger](objects) {
			patience, err := period.Parse(*trigger.Spec.Delivery.Timeout)
			if err != nil {
				t.Fatal(err)
			}
			waits, _ := patience.Duration()
			needs := funchost.PublishPatience + pgpool.StatementTimeout + funchost.PublishPatience // seat, statement, sink
			if waits <= needs {
				t.Errorf("Trigger %s waits %s, and an answer may take %s", trigger.Name, waits, needs)
			}
			for _, w := range workloads {
				if w.Name == trigger.Spec.Subscriber.Ref.Name && waits > time.Duration(w.TimeoutSeconds)*time.Second {
					t.Errorf("Trigger %s waits %s, and Knative gives up after %d s", trigger.Name, waits, w.TimeoutSeconds)
				}
			}
		}
	})
}
