package manifests

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const root = "../.."

// kustomizations are all folders that an operator applies.
func kustomizations(t *testing.T) []string {
	t.Helper()
	found := []string{filepath.Join(root, "knative")}
	for _, pattern := range []string{"knative/overlays/*", "knative/examples/*", "infra/kubernetes/*"} {
		folders, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range folders {
			if _, err := os.Stat(filepath.Join(folder, "kustomization.yaml")); err == nil {
				found = append(found, folder)
			}
		}
	}
	return found
}

// builds caches builds, because a dozen tests need the same few.
var builds sync.Map // folder → func() ([]Object, error)

func build(t *testing.T, folder string) []Object {
	t.Helper()
	once, _ := builds.LoadOrStore(folder, sync.OnceValues(func() ([]Object, error) { return Build(folder) }))
	objects, err := once.(func() ([]Object, error))()
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestEveryKustomizationBuildsAndTheClusterWouldTakeIt(t *testing.T) {
	t.Parallel()
	for _, folder := range kustomizations(t) {
		t.Run(strings.TrimPrefix(folder, root+"/"), func(t *testing.T) {
			t.Parallel()
			seen := map[string]bool{}
			for _, object := range build(t, folder) {
				if seen[object.String()] {
					t.Errorf("%s is there twice", object)
				}
				seen[object.String()] = true
			}
		})
	}
}

// ways are the kustomizations that run all of JobWeaver.
func ways(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(kustomizations(t), func(folder string) bool {
		inner := strings.TrimPrefix(folder, root+"/")
		return inner != "knative" && !strings.HasPrefix(inner, "knative/overlays/")
	})
}

func TestEveryObjectHasItsLabels(t *testing.T) {
	t.Parallel()
	for _, folder := range ways(t) {
		for _, object := range build(t, folder) {
			for label, want := range map[string]string{
				"app.kubernetes.io/name": "jobweaver", "app.kubernetes.io/part-of": "jobweaver",
			} {
				if object.Labels[label] != want {
					t.Errorf("%s: %s has the label %s=%q", folder, object, label, object.Labels[label])
				}
			}
			if object.Kind != "Namespace" && object.Namespace != "jobweaver" {
				t.Errorf("%s: %s is in the namespace %q", folder, object, object.Namespace)
			}
		}
	}
}
