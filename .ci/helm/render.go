// Package helm checks the chart in infra/helm/jobweaver with Helm's own library and without a cluster: it lints it,
// checks values by the chart's schema, renders it, and decodes each object strictly into its own type. It is a module
// of its own: Helm must not become the project's dependency.
package helm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	"github.com/jobweaver/jobweaver/ci/manifests"
)

// Folder is the chart.
const Folder = "../../infra/helm/jobweaver"

// Namespace and Release are those of a rendered chart.
const (
	Namespace = "prod"
	Release   = "jobweaver"
)

// cluster is what a chart sees of the Secrets of a cluster, by lookup.
type cluster struct{ secrets []manifests.Object }

// GetClientFor is engine.ClientProvider's.
func (c cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	if apiVersion != "v1" || kind != "Secret" {
		return nil, false, fmt.Errorf("the chart looks up a %s %s", apiVersion, kind)
	}
	var there []runtime.Object
	for _, secret := range c.secrets {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal(secret.YAML, &object.Object); err != nil {
			return nil, false, err
		}
		object.SetNamespace(Namespace)
		there = append(there, &object)
	}
	client := fake.NewSimpleDynamicClient(runtime.NewScheme(), there...)
	return client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}), true, nil
}

// Render renders the chart with values over its own, in a cluster with some Secrets. It returns the objects as the
// cluster would take them, and the notes.
func Render(values map[string]any, secrets ...manifests.Object) ([]manifests.Object, string, error) {
	loaded, err := loader.Load(Folder)
	if err != nil {
		return nil, "", err
	}
	options := common.ReleaseOptions{Name: Release, Namespace: Namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(loaded, values, options, common.DefaultCapabilities)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.RenderWithClientProvider(loaded, all, cluster{secrets})
	if err != nil {
		return nil, "", err
	}
	var objects []manifests.Object
	var notes string
	for name, text := range files {
		switch path.Ext(name) {
		case ".txt":
			notes = text
		case ".yaml":
			found, err := parse(text)
			if err != nil {
				return nil, "", fmt.Errorf("%s: %w in\n%s", name, err, text)
			}
			objects = append(objects, found...)
		}
	}
	slices.SortFunc(objects, func(a, b manifests.Object) int { return strings.Compare(a.String(), b.String()) })
	return objects, notes, nil
}

// parse decodes the documents of a file strictly.
func parse(text string) (objects []manifests.Object, err error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		var generic unstructured.Unstructured
		if err := yaml.Unmarshal(document, &generic.Object); err != nil {
			return nil, err
		}
		if len(generic.Object) == 0 {
			continue
		}
		object := manifests.Object{
			APIVersion: generic.GetAPIVersion(), Kind: generic.GetKind(), Namespace: Namespace, Name: generic.GetName(),
			Labels: generic.GetLabels(), Annotations: generic.GetAnnotations(), YAML: document,
		}
		if object.Typed, err = manifests.Decode(object.APIVersion, object.Kind, document); err != nil {
			return nil, fmt.Errorf("%s: %w", object, err)
		}
		objects = append(objects, object)
	}
}
