package manifests

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
)

// eachWay runs a test on each kustomization that runs all of JobWeaver.
func eachWay(t *testing.T, test func(t *testing.T, objects []Object, workloads []Workload)) {
	t.Helper()
	t.Parallel()
	for _, folder := range ways(t) {
		t.Run(strings.TrimPrefix(folder, root+"/"), func(t *testing.T) {
			t.Parallel()
			objects := build(t, folder)
			workloads, err := Workloads(objects)
			if err != nil {
				t.Fatal(err)
			}
			test(t, objects, workloads)
		})
	}
}

func functions(t *testing.T) map[string]Function {
	t.Helper()
	all, err := Functions()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryFolderOfFunctionsIsKnownHere(t *testing.T) {
	t.Parallel()
	folders, err := Folders()
	if err != nil {
		t.Fatal(err)
	}
	known := functions(t)
	for _, name := range folders {
		if _, ok := known[name]; !ok {
			t.Errorf("functions/%s is none of Functions", name)
		}
	}
	if len(known) != len(folders) {
		t.Errorf("%d functions are known, and %d have a folder", len(known), len(folders))
	}
}

func TestEachFunctionRunsOnceUnderItsNameAndItsAccount(t *testing.T) {
	eachWay(t, func(t *testing.T, objects []Object, workloads []Workload) {
		running := map[string]int{}
		for _, w := range workloads {
			running[w.Function()]++
			if w.Kind == "Job" {
				continue
			}
			if w.Name != w.Function() {
				t.Errorf("%s runs the function %s", w, w.Function())
			}
		}
		for name := range functions(t) {
			if running[name] != 1 && name != "relay" { // relay is a component: see relay_test.go
				t.Errorf("%s runs %d times", name, running[name])
			}
		}
		for _, w := range workloads {
			if _, there := Named(objects, "ServiceAccount", w.Name); !there || w.Pod.ServiceAccountName != w.Name {
				t.Errorf("%s runs as %q", w, w.Pod.ServiceAccountName)
			}
			if w.Labels["app.kubernetes.io/component"] != w.Name || w.Labels["app.kubernetes.io/name"] != "jobweaver" {
				t.Errorf("pods of %s have the labels %v", w, w.Labels)
			}
		}
	})
}

func TestEveryImageIsPinned(t *testing.T) {
	eachWay(t, func(t *testing.T, _ []Object, workloads []Workload) {
		for _, w := range workloads {
			if image := w.Pod.Containers[0].Image; !strings.Contains(image, ":") || strings.HasSuffix(image, ":latest") {
				t.Errorf("%s runs %s", w, image)
			}
		}
	})
}

func TestEverySettingIsOneThatTheFunctionReads(t *testing.T) {
	eachWay(t, func(t *testing.T, _ []Object, workloads []Workload) {
		known := functions(t)
		for _, w := range workloads {
			f, runs := known[w.Function()]
			for _, name := range w.Own() {
				if runs && !f.Knows(name) {
					t.Errorf("%s is given %s, which it does not read", w, name)
				}
			}
			for name := range w.config {
				if !slices.ContainsFunc(values(known), func(f Function) bool { return f.Knows(name) }) {
					t.Errorf("all are given %s, which no function reads", name)
				}
			}
		}
	})
}

func values(m map[string]Function) (all []Function) {
	for _, f := range m {
		all = append(all, f)
	}
	return all
}

// A setting that cannot be read would stop a process at its start. Here it fails CI. Not parallel, as it sets the
// environment.
func TestEverySettingCanBeRead(t *testing.T) {
	known := functions(t)
	for _, folder := range ways(t) {
		workloads, err := Workloads(build(t, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range workloads {
			t.Run(strings.TrimPrefix(folder, root+"/")+" "+w.Name, func(t *testing.T) {
				for name, value := range w.Env() {
					if !strings.HasSuffix(name, "_FILE") {
						t.Setenv(name, value)
					}
				}
				var cfg funchost.Config
				for _, part := range []any{&cfg, &cfg.Kafka, &cfg.TLS} {
					if err := envsettings.Load(part); err != nil {
						t.Error(err)
					}
				}
				for _, part := range known[w.Function()].Settings {
					if err := envsettings.Load(pointer(part)); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

func TestEachFunctionHasItsOwnRoleAndNoOthersSecret(t *testing.T) {
	eachWay(t, func(t *testing.T, _ []Object, workloads []Workload) {
		for _, w := range workloads {
			mounted := map[string]string{} // path → Secret
			for _, mount := range w.Pod.Containers[0].VolumeMounts {
				for _, volume := range w.Pod.Volumes {
					if volume.Name == mount.Name && volume.Secret != nil {
						mounted[mount.MountPath] = volume.Secret.SecretName
						for _, item := range volume.Secret.Items {
							mounted[mount.MountPath+"/"+item.Path] = volume.Secret.SecretName
						}
					}
				}
			}
			for name, path := range w.Env() {
				if strings.HasSuffix(name, "_FILE") && mounted[path] == "" && mounted[path[:strings.LastIndex(path, "/")]] == "" {
					t.Errorf("%s looks for %s at %s, where nothing is mounted", w, name, path)
				}
			}
			if path, given := w.Env()["DATABASE_URL_FILE"]; given && mounted[path] != "jobweaver-database-"+w.Name {
				t.Errorf("%s opens its database by the Secret %q", w, mounted[path])
			}
			for _, one := range w.Pod.Containers[0].Env {
				if one.ValueFrom != nil && one.ValueFrom.SecretKeyRef != nil {
					t.Errorf("%s has a secret in its environment: %s", w, one.Name)
				}
			}
		}
	})
}

func TestNoContainerMayMoreThanItMust(t *testing.T) {
	eachWay(t, func(t *testing.T, _ []Object, workloads []Workload) {
		for _, w := range workloads {
			if len(w.Pod.Containers) != 1 {
				t.Errorf("%s has %d containers", w, len(w.Pod.Containers))
			}
			c := w.Pod.Containers[0]
			s := c.SecurityContext
			if s == nil || !*s.RunAsNonRoot || *s.RunAsUser != 65532 || *s.AllowPrivilegeEscalation ||
				!*s.ReadOnlyRootFilesystem || s.Capabilities.Drop[0] != "ALL" || s.SeccompProfile.Type != "RuntimeDefault" {
				t.Errorf("%s runs with %v", w, s)
			}
			if w.Pod.AutomountServiceAccountToken == nil || *w.Pod.AutomountServiceAccountToken {
				t.Errorf("%s can talk to Kubernetes", w)
			}
			if w.Pod.EnableServiceLinks == nil || *w.Pod.EnableServiceLinks {
				t.Errorf("%s has Services in its environment, which may be taken for settings", w)
			}
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
				t.Errorf("%s asks for nothing", w)
			}
			limit, err := resource.ParseQuantity(strings.TrimSuffix(w.Env()["GOMEMLIMIT"], "B"))
			if err != nil || limit.Value()*10 > c.Resources.Limits.Memory().Value()*9 {
				t.Errorf("%s may have %s and its collector begins at %s (%v)", w, c.Resources.Limits.Memory(), &limit, err)
			}
		}
	})
}

func TestEveryProbeAsksWhatAFunctionAnswers(t *testing.T) {
	url := serveFunction(t)
	eachWay(t, func(t *testing.T, _ []Object, workloads []Workload) {
		for _, w := range workloads {
			if w.Kind == "Job" {
				continue
			}
			c := w.Pod.Containers[0]
			for name, probe := range map[string]*corev1.Probe{
				"startup": c.StartupProbe, "readiness": c.ReadinessProbe, "liveness": c.LivenessProbe,
			} {
				if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Port.IntVal != c.Ports[0].ContainerPort {
					t.Errorf("%s has the %s probe %v", w, name, probe)
					continue
				}
				if status := ask(t, url+probe.HTTPGet.Path); status != http.StatusOK {
					t.Errorf("%s asks %s for its %s, and is answered %d", w, probe.HTTPGet.Path, name, status)
				}
			}
		}
	})
}

// ask repeats the request until the function is ready, as a probe does.
func ask(t *testing.T, url string) (status int) {
	t.Helper()
	for again := time.NewTicker(10 * time.Millisecond); ; <-again.C {
		answer, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusServiceUnavailable {
			return answer.StatusCode
		}
	}
}

// serveFunction hosts a function as its process does, until the test and its subtests have ended.
func serveFunction(t *testing.T) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url = "http://" + listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- funchost.Run(ctx, funchost.Config{Listener: listener, Sink: url}, funchost.Function{Name: "probed"})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return url
}

// pointer returns a pointer to a copy of a struct, or part itself if it is a pointer already.
func pointer(part any) any {
	if reflect.TypeOf(part).Kind() == reflect.Pointer {
		return part
	}
	copied := reflect.New(reflect.TypeOf(part))
	copied.Elem().Set(reflect.ValueOf(part))
	return copied.Interface()
}

// with builds a kustomization with a component added.
func with(t *testing.T, folder, component string) []Object {
	t.Helper()
	own := t.TempDir()
	var paths []string
	for _, path := range []string{folder, component} {
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		if path, err = filepath.Rel(own, path); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	text := fmt.Sprintf("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [%s]\ncomponents: [%s]\n",
		paths[0], paths[1])
	if err := os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := Build(own)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestOnlyFunctionsThatReadTheKeysetHaveIt(t *testing.T) {
	t.Parallel()
	known := functions(t)
	for _, way := range []string{"knative", "knative/overlays/kafka-direct"} {
		folder := filepath.Join(root, way)
		workloads, err := Workloads(with(t, folder, filepath.Join(root, "knative/components/keyset")))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range workloads {
			_, given := w.Env()["ENCRYPTION_KEYSET_FILE"]
			if f, runs := known[w.Function()]; given != (runs && f.Knows("ENCRYPTION_KEYSET_FILE")) {
				t.Errorf("%s: %s is given the keyset: %v", folder, w, given)
			}
		}
	}
}
