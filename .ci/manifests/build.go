// Package manifests checks the manifests in knative/ and infra/kubernetes/ without a cluster: it builds every
// kustomization, decodes every object strictly into its own type, validates it as the cluster would, and compares all
// names from the code (functions, topics, types, settings) with the code. It is a module of its own: Kubernetes must
// not become the project's dependency.
package manifests

import (
	"fmt"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Object is one object of a build.
type Object struct {
	APIVersion, Kind, Namespace, Name string

	Labels, Annotations map[string]string

	YAML []byte
	// Typed is the object as the kind's own Go type, with its defaults. It is nil for a kind without a Go type: then
	// only the CRD's schema checks the object.
	Typed any
}

func (o Object) String() string { return fmt.Sprintf("%s %s %s", o.APIVersion, o.Kind, o.Name) }

// Build builds a kustomization as kubectl apply -k does, and decodes the result.
func Build(folder string) ([]Object, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", folder, err)
	}
	var objects []Object
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", folder, err)
		}
		object := Object{
			APIVersion: resource.GetApiVersion(), Kind: resource.GetKind(),
			Namespace: resource.GetNamespace(), Name: resource.GetName(),
			Labels: resource.GetLabels(), Annotations: resource.GetAnnotations(), YAML: text,
		}
		if object.Typed, err = Decode(object.APIVersion, object.Kind, text); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", folder, object, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// Named returns the object of a kind and name.
func Named(objects []Object, kind, name string) (Object, bool) {
	for _, object := range objects {
		if object.Kind == kind && object.Name == name {
			return object, true
		}
	}
	return Object{}, false
}

// Of returns the objects of a type.
func Of[T any](objects []Object) []*T {
	var found []*T
	for _, object := range objects {
		if typed, ok := object.Typed.(*T); ok {
			found = append(found, typed)
		}
	}
	return found
}
