package manifests

import (
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	servingv1 "knative.dev/serving/pkg/apis/serving/v1"
	"sigs.k8s.io/yaml"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// scheduling lists the topics to which any transaction of the scheduler may publish: run orders, cancels, dead letters
// and statuses of any job.
var scheduling = []string{
	jobevent.TopicRun + "*", jobevent.TopicAttemptCancel, jobevent.TopicDeadLetter, jobevent.TopicStatus,
	jobevent.TopicStatuses,
}

// publishes has the topics to which each function writes, as in docs/events.md. A function that consumes topics also
// writes its rejected records to the dead-letter topic.
var publishes = map[string][]string{
	"gateway": { // also because an admin can redrive rejected records
		jobevent.TopicCreated, jobevent.TopicCommand, jobevent.TopicEnded,
		jobevent.TopicAttemptLog, jobevent.TopicControlApplied, jobevent.TopicRun + "*",
	},
	"bulk": {jobevent.TopicCommand},
	"cron": {jobevent.TopicCreated, jobevent.TopicCommand}, // a schedule whose overlap is cancel
	"projection": {
		jobevent.TopicCreated, jobevent.TopicCommand, jobevent.TopicEnded, jobevent.TopicDeadLetter,
	},
	"ingest": scheduling, "dispatch": scheduling, "outcome": scheduling, "watchdog": scheduling,
	"command":   append(slices.Clone(scheduling), jobevent.TopicControlApplied),
	"retention": {jobevent.TopicStatus, jobevent.TopicStatuses},
	"runjob":    working, "pull": working,
}

var working = []string{
	jobevent.TopicEnded, jobevent.TopicAttemptLog, jobevent.TopicHeartbeat,
	jobevent.TopicDeadLetter,
}

// asks lists the topics whose retention each function reads from the broker.
var asks = map[string][]string{"retention": {jobevent.TopicCreated}, "runjob": {jobevent.TopicRun + "*"},
	"pull": {jobevent.TopicRun + "*"},
}

// With one user for all functions, an attacker in a worker could read every payload and publish any event.
func TestEachFunctionsKafkaUserMayDoWhatTheFunctionDoes(t *testing.T) {
	t.Parallel()
	objects := build(t, root+"/infra/kubernetes/kafka")
	known := functions(t)
	users := 0
	for _, object := range objects {
		name, ours := strings.CutPrefix(object.Name, "jobweaver-kafka-")
		if object.Kind != "KafkaUser" || !ours || name == "topics" {
			continue
		}
		users++
		f, there := known[name]
		if !there {
			t.Errorf("%s is the user of no function", object.Name)
		}
		consumes := slices.Clone(f.Topics)
		group := "jobweaver-" + name
		if name == "runjob" || name == "pull" { // it opens its consumer groups and its tailer itself
			consumes, group = []string{jobevent.TopicRun + "*", jobevent.TopicAttemptCancel}, "jobweaver-runjob-*"
		}
		var want []string
		for _, topic := range consumes {
			want = append(want, "topic "+topic+" Describe", "topic "+topic+" Read")
		}
		for _, topic := range publishes[name] {
			want = append(want, "topic "+topic+" Describe", "topic "+topic+" Write")
		}
		if name == "gateway" { // GET /api/lag: how far each function is behind its topics
			for _, other := range known {
				for _, topic := range other.Topics {
					want = append(want, "topic "+topic+" Describe")
				}
			}
			want = append(want, "topic "+jobevent.TopicAttemptCancel+" Describe", "group jobweaver-* Describe")
			created := jobevent.RunTopic("*") // PUT and DELETE /api/queues/{queue}
			want = append(want, "topic "+created+" Create", "topic "+created+" Delete", "group "+jobevent.RunGroup("*")+" Delete")
		}
		if len(consumes) > 0 {
			want = append(want, "group "+group+" Describe", "group "+group+" Read")
		}
		for _, topic := range asks[name] {
			want = append(want, "topic "+topic+" DescribeConfigs")
		}
		slices.Sort(want)
		if got := rightsOf(t, object); !slices.Equal(got, slices.Compact(want)) {
			t.Errorf("%s may\n%s\nand needs\n%s", object.Name, strings.Join(got, "\n"), strings.Join(slices.Compact(want), "\n"))
		}
	}
	if users != len(known)-2 { // all but notify and relay, which talk to no broker
		t.Errorf("%d functions have a user of Kafka", users)
	}
}

// rightsOf returns the rights of a KafkaUser, sorted and without duplicates. A star marks a name that is a prefix.
func rightsOf(t *testing.T, object Object) (rights []string) {
	t.Helper()
	var user struct {
		Spec struct {
			Authorization struct {
				ACLs []struct {
					Resource   struct{ Type, Name, PatternType string }
					Operations []string
				} `json:"acls"`
			}
		}
	}
	if err := yaml.Unmarshal(object.YAML, &user); err != nil {
		t.Fatal(err)
	}
	for _, acl := range user.Spec.Authorization.ACLs {
		name := acl.Resource.Name
		if acl.Resource.PatternType == "prefix" {
			name += "*"
		}
		for _, operation := range acl.Operations {
			rights = append(rights, acl.Resource.Type+" "+name+" "+operation)
		}
	}
	slices.Sort(rights)
	return slices.Compact(rights)
}

// Without these settings requests to the page's Service would be cut off after 5 minutes, and a cluster with restricted
// PodSecurity would admit none of its pods.
func TestTheServiceOfTheFunctionsPageIsAdmittedAndNotCutOff(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "/docs/functions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "```yaml\napiVersion: serving.knative.dev/v1\n")
	if !found {
		t.Fatal("the page has no service")
	}
	text, _, _ = strings.Cut("apiVersion: serving.knative.dev/v1\n"+text, "```")
	decoded, err := Decode("serving.knative.dev/v1", "Service", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	pod := decoded.(*servingv1.Service).Spec.Template.Spec
	if pod.TimeoutSeconds == nil || pod.ResponseStartTimeoutSeconds == nil || *pod.ResponseStartTimeoutSeconds != *pod.TimeoutSeconds {
		t.Errorf("an answer may take %v s, and begin after %v", pod.TimeoutSeconds, pod.ResponseStartTimeoutSeconds)
	}
	s := pod.Containers[0].SecurityContext
	if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
		s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, corev1.Capability("ALL")) ||
		s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("PodSecurity restricted refuses %+v", s)
	}
	if namespace := decoded.(*servingv1.Service).Namespace; namespace == "" || namespace == "jobweaver" {
		t.Errorf("it is in the namespace %q, whose policies keep it from calling back", namespace)
	}
	secret := pod.Containers[0].Env[0].ValueFrom.SecretKeyRef
	if !strings.Contains(string(page), "create secret generic "+secret.Name+" --from-literal="+secret.Key+"=") {
		t.Errorf("the page does not say how to make the Secret %s", secret.Name)
	}
}
