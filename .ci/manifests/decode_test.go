package manifests

import (
	"strings"
	"testing"
)

func TestWhatTheClusterWouldRefuseIsRefused(t *testing.T) {
	t.Parallel()
	trigger := func(spec string) string {
		return "apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {name: a, namespace: b}\nspec:\n" +
			"  broker: c\n  subscriber: {uri: 'http://d'}\n" + spec
	}
	for name, fault := range map[string]struct{ apiVersion, kind, text, want string }{
		"a field that is not there": {
			"eventing.knative.dev/v1", "Trigger", trigger("  filter: {subscriber: {uri: 'http://d'}}\n"), "unknown field",
		},
		"a delay that is no ISO 8601": {
			"eventing.knative.dev/v1", "Trigger", trigger("  delivery: {retry: 1, backoffDelay: 500ms}\n"), "backoffDelay",
		},
		"a schedule that is none": {
			"sources.knative.dev/v1", "PingSource",
			"metadata: {name: a}\nspec: {schedule: 'every second', sink: {uri: 'http://d'}}\n", "schedule",
		},
		"scale bounds the wrong way round": {
			"serving.knative.dev/v1", "Service", "metadata: {name: a}\nspec: {template: {metadata: {annotations: " +
				"{autoscaling.knative.dev/min-scale: '5', autoscaling.knative.dev/max-scale: '2'}}, " +
				"spec: {containers: [{image: a}]}}}\n", "max-scale",
		},
		"a grace period, which Knative has none of": {
			"serving.knative.dev/v1", "Service", "metadata: {name: a}\nspec: {template: {spec: " +
				"{terminationGracePeriodSeconds: 60, containers: [{image: a}]}}}\n", "terminationGracePeriodSeconds",
		},
		"an unknown kind": {"v1", "Sercive", "{}", "there is no check"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Decode(fault.apiVersion, fault.kind, []byte(fault.text))
			if err == nil || !strings.Contains(err.Error(), fault.want) {
				t.Errorf("the error is %v, not %q", err, fault.want)
			}
		})
	}
}
