// Package crd checks objects against CustomResourceDefinitions as an API server does: a field that the schema does not
// know is an error, and so is a value that breaks a type, bound, pattern, list key or CEL rule.
package crd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// Set has the known custom resources. A schema is compiled at its first use, because some are large.
type Set struct {
	kinds map[schema.GroupVersionKind]func() (*checks, error)
}

// checks are the rules of a schema for an object.
type checks struct {
	structure *structuralschema.Structural
	shape     validation.SchemaValidator
	rules     *cel.Validator // nil: the schema has none
}

// add takes the CustomResourceDefinitions among the YAML documents of a file.
func (s *Set) add(file []byte) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(file)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(document, &definition); err != nil || definition.Kind != "CustomResourceDefinition" {
			continue // releases hold other objects too
		}
		for _, version := range definition.Spec.Versions {
			if !version.Served || version.Schema == nil {
				continue
			}
			gvk := schema.GroupVersionKind{
				Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind,
			}
			s.kinds[gvk] = sync.OnceValues(func() (*checks, error) { return compile(version.Schema) })
		}
	}
}

// Knows reports whether the set has a schema for objects of that kind.
func (s *Set) Knows(gvk schema.GroupVersionKind) bool { return s.kinds[gvk] != nil }

// Check returns the errors for which an API server would refuse the object, which is YAML and of a kind that the set
// knows.
func (s *Set) Check(ctx context.Context, document []byte) error {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return err
	}
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil { // whole numbers stay whole
		return err
	}
	gvk := (&unstructured.Unstructured{Object: object}).GroupVersionKind()
	schemaOf := s.kinds[gvk]
	if schemaOf == nil {
		return fmt.Errorf("no CustomResourceDefinition of %s", gvk)
	}
	compiled, err := schemaOf()
	if err != nil {
		return fmt.Errorf("schema of %s: %w", gvk, err)
	}
	return compiled.of(ctx, object)
}

func compile(definition *apiextensionsv1.CustomResourceValidation) (*checks, error) {
	var internal apiextensions.CustomResourceValidation
	err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(
		definition, &internal, nil)
	if err != nil {
		return nil, err
	}
	structure, err := structuralschema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	shape, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	return &checks{
		structure: structure, shape: shape, rules: cel.NewValidator(structure, true, celconfig.PerCallLimit),
	}, nil
}

func (c *checks) of(ctx context.Context, object map[string]any) error {
	var problems []error
	unknown := pruning.PruneWithOptions(object, c.structure, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		problems = append(problems, fmt.Errorf("%s: no such field", path))
	}
	defaulting.Default(object, c.structure)
	found := validation.ValidateCustomResource(nil, object, c.shape)
	found = append(found, listtype.ValidateListSetsAndMaps(nil, c.structure, object)...)
	if c.rules != nil && len(found) == 0 {
		broken, _ := c.rules.Validate(ctx, nil, c.structure, object, nil, celconfig.RuntimeCELCostBudget)
		found = append(found, broken...)
	}
	return errors.Join(errors.Join(problems...), joined(found))
}

func joined(list field.ErrorList) error {
	problems := make([]error, len(list))
	for i, problem := range list {
		problems[i] = problem
	}
	return errors.Join(problems...)
}
