package helm

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/jobweaver/jobweaver/ci/manifests"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// ways are values of whole installations, of each mode.
var ways = map[string]string{
	"single":     external + everything,
	"serve":      serve + everything,
	"groups":     groups + everything,
	"functions":  functions + everything,
	"services":   groups + everything + "database: {existingSecret: db, roles: services, caSecret: ca}\n",
	"roles":      functions + everything + "database: {existingSecret: db, roles: functions, passwordsSecret: words}\n",
	"for trials": bundled + everything,
	"beside":     serve + everything + "installation: shop\ndatabase: {schemas: true}\n",
}

const everything = `
relay: {existingSecret: boxes}
keyset: {existingSecret: keys}
apiKey: {existingSecret: key}
publicUrl: https://jobs.example.org
ingress: {enabled: true, host: jobs.example.org, tlsSecret: cert, className: nginx}
networkPolicy: {enabled: true}
monitoring: {podMonitor: {enabled: true}, rules: {enabled: true}}
`

// eachWay runs a test on each of ways.
func eachWay(t *testing.T, test func(t *testing.T, way string, objects []manifests.Object)) {
	t.Helper()
	t.Parallel()
	for way, values := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			test(t, way, renderLines(t, values))
		})
	}
}

// renderLines renders with each line merged over those before, so that a later `database` adds to an earlier one.
func renderLines(t *testing.T, values string) []manifests.Object {
	t.Helper()
	return render(t, strings.Split(values, "\n")...)
}

func TestTheLinterOfHelmFindsNothing(t *testing.T) {
	t.Parallel()
	for way, values := range ways {
		found := lint.RunAll(Folder, read(t, strings.Split(values, "\n")...), Namespace)
		for _, message := range found.Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %s", way, message)
			}
		}
	}
}

func TestNoObjectIsThereTwiceAndEachHasItsLabels(t *testing.T) {
	eachWay(t, func(t *testing.T, _ string, objects []manifests.Object) {
		seen := map[string]bool{}
		for _, object := range objects {
			if seen[object.String()] {
				t.Errorf("%s is there twice", object)
			}
			seen[object.String()] = true
			if object.Labels["app.kubernetes.io/name"] != "jobweaver" || object.Labels["app.kubernetes.io/instance"] != Release {
				t.Errorf("%s has the labels %v", object, object.Labels)
			}
		}
	})
}

// functionsOf returns the functions that a Deployment runs.
func functionsOf(d *appsv1.Deployment) []string {
	args := d.Spec.Template.Spec.Containers[0].Args
	if len(args) == 1 {
		return nil // serve: all of them
	}
	sets := map[string]migrations.Set{"api": migrations.API, "scheduler": migrations.Scheduler}
	if set, isGroup := sets[args[2]]; isGroup {
		return set.Functions
	}
	if args[2] == "worker" {
		return []string{"runjob"}
	}
	return strings.Split(args[2], ",")
}

func TestEachFunctionRunsInOneDeployment(t *testing.T) {
	eachWay(t, func(t *testing.T, way string, objects []manifests.Object) {
		running := map[string]int{}
		for _, d := range manifests.Of[appsv1.Deployment](objects) {
			if args := d.Spec.Template.Spec.Containers[0].Args; args[0] != "serve" {
				t.Errorf("%s runs %q", d.Name, args)
			}
			for _, name := range functionsOf(d) {
				running[name]++
			}
		}
		if way == "single" {
			return
		}
		folders, err := manifests.Folders()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range folders {
			if running[name] != 1 {
				t.Errorf("%s runs %d times", name, running[name])
			}
		}
	})
}

func envOf(d *appsv1.Deployment) map[string]string {
	env := map[string]string{}
	for _, one := range d.Spec.Template.Spec.Containers[0].Env {
		env[one.Name] = one.Value
	}
	return env
}

// A setting that no function reads would have no effect, and one of a file that is not mounted would stop the start.
func TestEachSettingIsReadAndEachFileIsMounted(t *testing.T) {
	known, err := manifests.Functions()
	if err != nil {
		t.Fatal(err)
	}
	ofServe := []string{"PULL_PORT", "DATABASE_SCHEMAS", "API_DATABASE_URL_FILE", "SCHEDULER_DATABASE_URL_FILE", "WORKER_DATABASE_URL_FILE"}
	eachWay(t, func(t *testing.T, _ string, objects []manifests.Object) {
		for _, d := range manifests.Of[appsv1.Deployment](objects) {
			names := functionsOf(d)
			if names == nil {
				names = slices.Collect(maps.Keys(known))
			}
			files := map[string]bool{}
			spec := d.Spec.Template.Spec
			for _, mount := range spec.Containers[0].VolumeMounts {
				i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
				if i < 0 {
					t.Errorf("%s mounts %s, which is no volume", d.Name, mount.Name)
				} else if secret := spec.Volumes[i].Secret; secret != nil {
					if len(secret.Items) == 0 {
						t.Errorf("%s mounts all of the Secret %s", d.Name, secret.SecretName)
					}
					for _, item := range secret.Items {
						files[mount.MountPath+"/"+item.Path] = true
					}
				}
			}
			used := map[string]bool{}
			for name, value := range envOf(d) {
				reads := slices.ContainsFunc(names, func(f string) bool { return known[f].Knows(name) })
				if !reads && !slices.Contains(ofServe, name) && name != "PULL_QUEUES" {
					t.Errorf("%s is given %s, which it does not read", d.Name, name)
				}
				if strings.HasSuffix(name, "_FILE") {
					used[value] = true
					if !files[value] {
						t.Errorf("%s looks for %s at %s, where nothing is mounted", d.Name, name, value)
					}
				}
			}
			for file := range files {
				if !used[file] && !strings.HasPrefix(file, "/etc/jobweaver/database-ca/") { // an address names it
					t.Errorf("%s has %s, which it does not read", d.Name, file)
				}
			}
		}
	})
}

func TestAProcessHasTheAddressesOfItsDatabasesAndNoOthers(t *testing.T) {
	eachWay(t, func(t *testing.T, way string, objects []manifests.Object) {
		for _, d := range manifests.Of[appsv1.Deployment](objects) {
			for _, set := range []migrations.Set{migrations.API, migrations.Scheduler, migrations.Worker} {
				uses := slices.ContainsFunc(functionsOf(d), func(f string) bool { return slices.Contains(set.Functions, f) })
				_, given := envOf(d)[strings.ToUpper(set.Name)+"_DATABASE_URL_FILE"]
				if own := way == "services" || way == "roles"; own && given != uses {
					t.Errorf("%s has the address of %s: %v", d.Name, set.Name, given)
				}
			}
			_, given := envOf(d)["DATABASE_URL_FILE"]
			if shared := way != "services" && way != "roles"; given != (shared && d.Name != "jobweaver-relay") {
				t.Errorf("%s has the address of the server: %v", d.Name, given)
			}
		}
	})
}

func TestNoContainerMayMoreThanItMust(t *testing.T) {
	eachWay(t, func(t *testing.T, _ string, objects []manifests.Object) {
		for _, d := range manifests.Of[appsv1.Deployment](objects) {
			spec := d.Spec.Template.Spec
			c := spec.Containers[0]
			s := c.SecurityContext
			if s == nil || !*s.RunAsNonRoot || *s.RunAsUser != 65532 || *s.AllowPrivilegeEscalation ||
				!*s.ReadOnlyRootFilesystem || s.Capabilities.Drop[0] != "ALL" || s.SeccompProfile.Type != "RuntimeDefault" {
				t.Errorf("%s runs with %v", d.Name, s)
			}
			if *spec.AutomountServiceAccountToken || *spec.EnableServiceLinks {
				t.Errorf("%s has a token, or Services in its environment", d.Name)
			}
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s asks for nothing", d.Name)
			}
			for name, probe := range map[string]*corev1.Probe{
				"startup": c.StartupProbe, "readiness": c.ReadinessProbe, "liveness": c.LivenessProbe,
			} {
				if probe == nil || probe.HTTPGet.Port.StrVal != c.Ports[0].Name || envOf(d)["PORT"] != fmt.Sprint(c.Ports[0].ContainerPort) {
					t.Errorf("%s has the %s probe %v and the ports %v", d.Name, name, probe, c.Ports)
				}
			}
		}
	})
}

// selects reports whether labels are all there.
func selects(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return len(selector) > 0
}

func TestEachServiceAndBudgetSelectsItsPods(t *testing.T) {
	eachWay(t, func(t *testing.T, _ string, objects []manifests.Object) {
		pods := map[string]map[string]string{}
		for _, d := range manifests.Of[appsv1.Deployment](objects) {
			pods[d.Name] = d.Spec.Template.Labels
		}
		for _, s := range manifests.Of[appsv1.StatefulSet](objects) {
			pods[s.Name] = s.Spec.Template.Labels
		}
		behind := func(selector map[string]string) (names []string) {
			for name, labels := range pods {
				if selects(selector, labels) {
					names = append(names, name)
				}
			}
			return names
		}
		for _, service := range manifests.Of[corev1.Service](objects) {
			if found := behind(service.Spec.Selector); len(found) != 1 {
				t.Errorf("behind the Service %s are %v", service.Name, found)
			}
		}
		for _, budget := range manifests.Of[policyv1.PodDisruptionBudget](objects) {
			if found := behind(budget.Spec.Selector.MatchLabels); len(found) != 1 || budget.Spec.MaxUnavailable.IntVal < 1 {
				t.Errorf("the budget %s is of %v, and lets go %v", budget.Name, found, budget.Spec.MaxUnavailable)
			}
		}
	})
}

// One pod of single is ready, and a budget counts ready pods: it would stop each drain of that pod's node.
func TestWhereOnePodWorksAndOthersStandByNoBudgetAndNoRolloutWaits(t *testing.T) {
	t.Parallel()
	objects := renderLines(t, ways["single"])
	if budgets := manifests.Of[policyv1.PodDisruptionBudget](objects); len(budgets) != 0 {
		t.Errorf("there is the budget %s", budgets[0].Name)
	}
	deployment := manifests.Of[appsv1.Deployment](objects)[0]
	if update := deployment.Spec.Strategy.RollingUpdate; update.MaxUnavailable.StrVal != "100%" || *deployment.Spec.Replicas < 2 {
		t.Errorf("a rollout waits for a pod that stands by: %v", update)
	}
}

func TestTheRulesAreThoseOfPrometheus(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../infra/kubernetes/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want, got struct{ Spec any }
	rule, _ := manifests.Named(renderLines(t, ways["single"]), "PrometheusRule", "jobweaver")
	for _, one := range []struct {
		from []byte
		to   any
	}{{text, &want}, {rule.YAML, &got}} {
		if err := yaml.Unmarshal(one.from, one.to); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(got.Spec) != fmt.Sprint(want.Spec) {
		t.Error("the chart has other rules")
	}
}

func TestEachQueueAndEachTopicScalesItsOwnWorkers(t *testing.T) {
	t.Parallel()
	known, err := manifests.Functions()
	if err != nil {
		t.Fatal(err)
	}
	objects := renderLines(t, functions+"queues: [default, gpu, pull]\nautoscaling: {keda: {enabled: true}}\n")
	partitions := map[string]int{}
	for _, topic := range jobevent.Topics([]string{"default", "gpu"}) {
		partitions[topic.Name] = int(topic.Partitions)
	}
	for _, name := range []string{"runjob", "ingest", "outcome", "command", "projection"} {
		var scaled struct {
			Spec struct {
				MaxReplicaCount int
				Triggers        []struct{ Metadata map[string]string }
			}
		}
		object, _ := manifests.Named(objects, "ScaledObject", "jobweaver-"+name)
		if err := yaml.Unmarshal(object.YAML, &scaled); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{} // topic → group
		for _, topic := range known[name].Topics {
			want[topic] = "jobweaver-" + name
		}
		if name == "runjob" {
			for _, queue := range []string{"default", "gpu"} {
				want[jobevent.RunTopic(queue)] = "jobweaver-runjob-" + queue
			}
		}
		got, most := map[string]string{}, 0
		for _, trigger := range scaled.Spec.Triggers {
			got[trigger.Metadata["topic"]] = trigger.Metadata["consumerGroup"]
			most = max(most, partitions[trigger.Metadata["topic"]])
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s is scaled by %v, not %v", name, got, want)
		}
		if scaled.Spec.MaxReplicaCount > most {
			t.Errorf("%d of %s would share %d partitions", scaled.Spec.MaxReplicaCount, name, most)
		}
	}
}

// What signs and what the volume was made with must be the same after an upgrade.
func TestSecretsAreMadeOnceAndKept(t *testing.T) {
	t.Parallel()
	for secret, values := range map[string]string{
		"jobweaver-signing":  groups + "database: {existingSecret: db, roles: services}\n",
		"jobweaver-database": bundled,
	} {
		lines := read(t, strings.Split(values, "\n")...)
		first, _, err := Render(lines)
		if err != nil {
			t.Fatal(err)
		}
		made, there := manifests.Named(first, "Secret", secret)
		if !there || made.Annotations["helm.sh/resource-policy"] != "keep" {
			t.Fatalf("there is no Secret %s, or it goes with the release", secret)
		}
		again, _, err := Render(lines, made)
		if err != nil {
			t.Fatal(err)
		}
		if kept, _ := manifests.Named(again, "Secret", secret); string(kept.YAML) != string(made.YAML) {
			t.Errorf("an upgrade makes another Secret:\n%s\n%s", made.YAML, kept.YAML)
		}
		if other, _ := manifests.Named(renderLines(t, values), "Secret", secret); string(other.YAML) == string(made.YAML) {
			t.Errorf("two installations have the same Secret:\n%s", made.YAML)
		}
		for key, text := range made.Typed.(*corev1.Secret).Data {
			encoded, signs := strings.CutPrefix(string(text), "whsec_")
			if raw, err := base64.StdEncoding.DecodeString(encoded); signs && (err != nil || len(raw) != 32) {
				t.Errorf("%s is %q", key, text)
			}
		}
	}
}

func TestEachPodReachesOnlyWhatItNeeds(t *testing.T) {
	eachWay(t, func(t *testing.T, way string, objects []manifests.Object) {
		policies := manifests.Of[networkingv1.NetworkPolicy](objects)
		for _, policy := range policies {
			policy.ObjectMeta = metav1.ObjectMeta{Name: policy.Name, Namespace: Namespace}
		}
		pods := map[string]manifests.Peer{}
		for _, d := range manifests.Of[appsv1.Deployment](objects) {
			pods[strings.TrimPrefix(d.Name, "jobweaver-")] = manifests.Peer{Namespace: Namespace, Labels: d.Spec.Template.Labels}
		}
		outside := manifests.Peer{Address: netip.MustParseAddr("93.184.216.34")}
		stranger := manifests.Peer{Namespace: "shop", Labels: map[string]string{"app.kubernetes.io/name": "jobweaver"}}
		prometheus := manifests.Peer{Namespace: "monitoring"}
		check := func(want bool, whoFrom string, from manifests.Peer, whoTo string, to manifests.Peer, port int32) {
			t.Helper()
			if got := manifests.Reaches(policies, from, to, port); got != want {
				t.Errorf("%s reaches %s at %d: %v", whoFrom, whoTo, port, got)
			}
		}
		for name, own := range pods {
			d, _ := manifests.Named(objects, "Deployment", "jobweaver-"+name)
			runs := functionsOf(d.Typed.(*appsv1.Deployment))
			one := func(names ...string) bool {
				return way == "single" || slices.ContainsFunc(names, func(f string) bool { return slices.Contains(runs, f) })
			}
			check(one("gateway", "notify", "runjob"), name, own, "the world", outside, 443)
			check(true, name, own, "PostgreSQL", outside, 5432)
			check(false, name, own, "the cloud's own address",
				manifests.Peer{Address: netip.MustParseAddr("169.254.169.254")}, 80)
			check(one("gateway"), "a client", stranger, name, own, 8080)
			check(false, "a client", stranger, name, own, 8090)
			check(true, "Prometheus", prometheus, name, own, 9464)
			check(false, "a client", stranger, name, own, 9464)
			if one("gateway") && way != "single" {
				for other, to := range pods {
					if to.Labels["jobweaver.io/pull"] == "true" {
						check(true, name, own, other, to, 8090)
					}
				}
			}
			if relay, alone := pods["relay"]; alone && one("gateway") {
				check(true, "relay", relay, name, own, 8080)
			}
		}
	})
}

func TestTheBundledServersAreThoseOfCompose(t *testing.T) {
	t.Parallel()
	compose, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range manifests.Of[appsv1.StatefulSet](renderLines(t, bundled)) {
		if image := set.Spec.Template.Spec.Containers[0].Image; !strings.Contains(string(compose), "image: "+image+"\n") {
			t.Errorf("%s runs %s, which docker-compose.yml does not", set.Name, image)
		}
	}
}
