package manifests

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/jobweaver/jobweaver/ci/manifests/crd"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// made returns the Secrets that operators make from our objects, and the Secrets among the objects.
func made(objects []Object) map[string]bool {
	secrets := map[string]bool{"postgres-ca": true, "kafka-cluster-ca-cert": true}
	for _, object := range objects {
		switch object.Kind {
		case "Secret", "KafkaUser":
			secrets[object.Name] = true
		case "DatabaseRole":
			secrets[object.Name+"-client-cert"] = true
		}
	}
	return secrets
}

// secretsOf returns the names of all Secrets to which objects refer.
func secretsOf(t *testing.T, objects []Object) map[string]string {
	t.Helper()
	asked := map[string]string{}
	for _, object := range objects {
		var tree any
		if err := yaml.Unmarshal(object.YAML, &tree); err != nil {
			t.Fatal(err)
		}
		walk(tree, func(name string, value any) {
			text, _ := value.(string)
			fields, _ := value.(map[string]any)
			switch name {
			case "secretName", "auth.secret.ref.name":
				asked[text] = object.String()
			case "secret": // of a projected volume, and Knative's auth.secret.ref
				if reference, there := fields["ref"].(map[string]any); there {
					fields = reference
				}
				if text, there := fields["name"].(string); there {
					asked[text] = object.String()
				}
			case "accessKeyId", "secretAccessKey":
				asked[fields["name"].(string)] = object.String()
			case "secretTargetRef":
				for _, one := range value.([]any) {
					asked[one.(map[string]any)["name"].(string)] = object.String()
				}
			}
		})
	}
	return asked
}

func walk(tree any, each func(name string, value any)) {
	switch tree := tree.(type) {
	case map[string]any:
		for name, value := range tree {
			each(name, value)
			walk(value, each)
		}
	case []any:
		for _, value := range tree {
			walk(value, each)
		}
	}
}

// A pod whose Secret is missing waits for ever, and only Kubernetes' events show it.
func TestEverySecretOfProductionIsMadeOrAskedForInTheGuide(t *testing.T) {
	t.Parallel()
	objects := production(t)
	guide, err := os.ReadFile(filepath.Join(root, "docs", "production.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := made(objects)
	for name, asks := range secretsOf(t, objects) {
		if !there[name] && !strings.Contains(string(guide), "`"+name+"`") {
			t.Errorf("%s asks for the Secret %q, which no object makes and docs/production.md does not name", asks, name)
		}
	}
}

// Which rights and which database a role has is tested on a real server, in infra/kubernetes.
func TestOnlyTheFunctionsHaveDatabaseRoles(t *testing.T) {
	t.Parallel()
	functions, err := Folders()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"jobweaver-database-migrate"}
	for _, function := range functions {
		if function == "relay" { // relay has no database of ours
			continue
		}
		want = append(want, "jobweaver-database-"+function)
	}
	var got []string
	for _, object := range production(t) {
		if object.Kind == "DatabaseRole" {
			got = append(got, object.Name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("there are roles of %v, want %v", got, want)
	}
}

// pool returns the most connections in a process's pool. Listening connections come on top.
func pool(t *testing.T, objects []Object, function string) int {
	t.Helper()
	object, _ := Named(objects, "Secret", "jobweaver-database-"+function)
	var secret corev1.Secret
	if err := yaml.Unmarshal(object.YAML, &secret); err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(string(secret.Data["url"]))
	if err != nil {
		t.Fatal(err)
	}
	most, err := strconv.Atoi(address.Query().Get("pool_max_conns"))
	if err != nil || most < 4 {
		t.Errorf("%s opens %d connections, or one a core of its node: %v", function, most, err)
	}
	return most + 1
}

// A pod that the server refuses because it has no connection left is not ready, and that happens again whenever the
// load is as high.
func TestTheServerHasAConnectionForEachPodAtFullScale(t *testing.T) {
	t.Parallel()
	objects := production(t)
	workloads, err := Workloads(objects)
	if err != nil {
		t.Fatal(err)
	}
	scaled, sum := scaledObjects(t, objects), 0
	for _, w := range workloads {
		if w.Kind == "Job" {
			continue
		}
		pods := scaled[w.Name].Spec.MaxReplicaCount
		if w.OnKnative {
			if pods, err = strconv.Atoi(w.Annotations["autoscaling.knative.dev/max-scale"]); err != nil {
				t.Errorf("%s: %v", w, err)
			}
		}
		if w.Name == "pull" { // it is not scaled: one copy, and a second one during a replacement
			pods = 2
		}
		if pods == 0 {
			t.Errorf("%s has no bound", w)
		}
		sum += pods * pool(t, objects, w.Function())
	}
	cluster, _ := Named(objects, "Cluster", "postgres")
	var server struct {
		Spec struct {
			PostgreSQL struct{ Parameters map[string]string }
		}
	}
	if err := yaml.Unmarshal(cluster.YAML, &server); err != nil {
		t.Fatal(err)
	}
	most, err := strconv.Atoi(server.Spec.PostgreSQL.Parameters["max_connections"])
	if err != nil || sum > most-10 {
		t.Errorf("functions open %d connections, and the server has %d, %v", sum, most, err)
	}
}

// trigger is a KEDA trigger that reads the lag of a consumer group.
type trigger struct {
	Type              string
	Metadata          map[string]string
	AuthenticationRef struct{ Name string }
}

func TestKEDAUnderstandsEveryTrigger(t *testing.T) {
	t.Parallel()
	scalers, err := crd.LoadScalers()
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range ways(t) {
		objects := build(t, folder)
		for _, object := range objects {
			if object.Kind != "ScaledObject" {
				continue
			}
			var scaled struct{ Spec struct{ Triggers []trigger } }
			if err := yaml.Unmarshal(object.YAML, &scaled); err != nil {
				t.Fatal(err)
			}
			for _, one := range scaled.Spec.Triggers {
				if err := scalers.Check(one.Type, one.Metadata, given(t, objects, one)); err != nil {
					t.Errorf("%s: %s: %v", folder, object, err)
				}
				if strings.HasSuffix(folder, "production") && (one.AuthenticationRef.Name == "" || one.Metadata["tls"] != "enable") {
					t.Errorf("%s: %s connects to Kafka without a user or without TLS", folder, object)
				}
			}
		}
	}
}

// given are the parameters of the TriggerAuthentication that the trigger names.
func given(t *testing.T, objects []Object, one trigger) (names []string) {
	t.Helper()
	if one.AuthenticationRef.Name == "" {
		return nil
	}
	object, there := Named(objects, "TriggerAuthentication", one.AuthenticationRef.Name)
	if !there {
		t.Fatalf("there is no TriggerAuthentication %s", one.AuthenticationRef.Name)
	}
	var authentication struct {
		Spec struct {
			SecretTargetRef, ConfigMapTargetRef []struct{ Parameter string }
		}
	}
	if err := yaml.Unmarshal(object.YAML, &authentication); err != nil {
		t.Fatal(err)
	}
	for _, reference := range slices.Concat(authentication.Spec.SecretTargetRef, authentication.Spec.ConfigMapTargetRef) {
		names = append(names, reference.Parameter)
	}
	return names
}

// Three brokers keep three copies of everything and continue with two: the settings of KafkaUsers and topics must fit
// that.
func TestKafkaKeepsWhatWasAcknowledgedWithABrokerAway(t *testing.T) {
	t.Parallel()
	objects := production(t)
	var kafka struct {
		Spec struct {
			Kafka struct{ Config map[string]any }
		}
	}
	cluster, _ := Named(objects, "Kafka", "kafka")
	if err := yaml.Unmarshal(cluster.YAML, &kafka); err != nil {
		t.Fatal(err)
	}
	config := kafka.Spec.Kafka.Config
	for _, name := range []string{
		"default.replication.factor", "offsets.topic.replication.factor", "transaction.state.log.replication.factor",
	} {
		if config[name] != float64(3) {
			t.Errorf("%s is %v", name, config[name])
		}
	}
	for _, name := range []string{"min.insync.replicas", "transaction.state.log.min.isr"} {
		if config[name] != float64(2) {
			t.Errorf("%s is %v", name, config[name])
		}
	}
	if size, _ := config["message.max.bytes"].(float64); size < kafkaevent.MessageLimit {
		t.Errorf("message.max.bytes is %v, and a record may have %d", config["message.max.bytes"], kafkaevent.MessageLimit)
	}
	for _, settings := range Of[corev1.ConfigMap](objects) {
		if factor, there := settings.Data["KAFKA_REPLICATION_FACTOR"]; there && factor != "3" {
			t.Errorf("topics are made with %s replicas", factor)
		}
	}
	for _, role := range []string{"broker", "controller"} {
		pool, there := Named(objects, "KafkaNodePool", role)
		if !there || !strings.Contains(string(pool.YAML), "\n  replicas: 3\n") {
			t.Errorf("there are not three of the pool %s", role)
		}
	}
}
