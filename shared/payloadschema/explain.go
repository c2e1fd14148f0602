package payloadschema

import (
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// explain converts the library's errors into problems in the terms of strictjson.
func (s *Schema) explain(refused *jsonschema.ValidationError) strictjson.Problems {
	var p strictjson.Problems
	s.add(&p, refused)
	slices.SortStableFunc(p, func(a, b apierror.Detail) int { return strings.Compare(a.Path, b.Path) })
	return p
}

// add adds the problems of one failure and of its causes.
func (s *Schema) add(p *strictjson.Problems, e *jsonschema.ValidationError) {
	if p.Full() {
		return
	}
	path := pathTo(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		for _, cause := range e.Causes {
			s.add(p, cause)
		}
	case *kind.Required:
		for _, name := range k.Missing {
			p.Add(strictjson.Join(path, name), "is required")
		}
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
		for _, name := range k.Properties {
			p.Add(strictjson.Join(path, name), "is not a known field")
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			p.Add(strictjson.Join(path, name), "is required with "+k.Prop)
		}
	case *kind.PropertyNames:
		p.Add(strictjson.Join(pathTo(placeOfNames(e)), k.Property), "is not an allowed name")
	case *kind.UniqueItems:
		p.Add(strictjson.Join(path, strconv.Itoa(k.Duplicates[1])), "is there twice")
	case *kind.AnyOf:
		s.addNearest(p, e, path)
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			s.addNearest(p, e, path)
			return
		}
		p.Add(path, s.tooMany(e.SchemaURL, k.Subschemas))
	case *kind.Pattern:
		if words := patternWords[k.Want]; words != "" {
			p.Add(path, words)
			return
		}
		p.Add(path, wrongValue(k)+s.described(e.SchemaURL))
	default:
		p.Add(path, wrongValue(k))
	}
}

// placeOfNames returns the place of the object that has a refused name. The place in the library's error is unusable,
// because the library goes on to write into it (v6.0.3, only here). So the place is taken from the schema's location,
// if that consists only of properties.
func placeOfNames(e *jsonschema.ValidationError) []string {
	_, fragment, _ := strings.Cut(e.SchemaURL, "#")
	tokens := strings.Split(strings.TrimSuffix(fragment, "/propertyNames"), "/")[1:]
	var place []string
	for i := 0; i+1 < len(tokens); i += 2 {
		name, err := url.PathUnescape(tokens[i+1])
		if tokens[i] != "properties" || err != nil {
			return e.InstanceLocation
		}
		place = append(place, strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
	}
	return place
}

// described returns the schema's description of the value, since few people read patterns.
func (s *Schema) described(location string) string {
	node, _ := lookUp(s.document, location).(map[string]any)
	if text, _ := node["description"].(string); text != "" {
		return " (" + strings.TrimSuffix(cut(text), ".") + ")"
	}
	return ""
}

func pathTo(location []string) string { return strictjson.Path("payload", slices.Values(location)) }

// addNearest describes a value that fits none of several forms by the form that the client probably meant: it leaves
// out forms whose const differs, and takes the form whose problem is deepest inside the value. If several remain, it
// names what each requires.
func (s *Schema) addNearest(p *strictjson.Problems, e *jsonschema.ValidationError, path string) {
	forms := slices.Clone(e.Causes)
	forms = slices.DeleteFunc(forms, func(f *jsonschema.ValidationError) bool { return constOf(f) != nil })
	deepest := 0
	for _, form := range forms {
		deepest = max(deepest, depth(form))
	}
	forms = slices.DeleteFunc(forms, func(f *jsonschema.ValidationError) bool { return depth(f) < deepest })
	if len(forms) == 1 {
		s.add(p, forms[0])
		return
	}
	if len(forms) == 0 { // the const of each form differs
		forms = e.Causes
	}
	p.Add(wanted(forms, path))
}

// constOf returns the failure that shows that the client meant another form; nil: there is none.
func constOf(form *jsonschema.ValidationError) *jsonschema.ValidationError {
	for leaf := range leaves(form) {
		if _, ok := leaf.ErrorKind.(*kind.Const); ok {
			return leaf
		}
	}
	return nil
}

func leaves(e *jsonschema.ValidationError) iter.Seq[*jsonschema.ValidationError] {
	return func(yield func(*jsonschema.ValidationError) bool) { eachLeaf(e, yield) }
}

func eachLeaf(e *jsonschema.ValidationError, yield func(*jsonschema.ValidationError) bool) bool {
	if len(e.Causes) == 0 {
		return yield(e)
	}
	for _, cause := range e.Causes {
		if !eachLeaf(cause, yield) {
			return false
		}
	}
	return true
}

func depth(e *jsonschema.ValidationError) int {
	deepest := len(e.InstanceLocation)
	for _, cause := range e.Causes {
		deepest = max(deepest, depth(cause))
	}
	return deepest
}

// wanted describes in one sentence what several forms require, if each has a single failure of the same kind.
func wanted(forms []*jsonschema.ValidationError, path string) (where, what string) {
	var types, names, values []string
	for _, form := range forms {
		leaf := onlyLeaf(form)
		if leaf == nil {
			return path, "fits none of the allowed forms"
		}
		where = pathTo(leaf.InstanceLocation)
		switch k := leaf.ErrorKind.(type) {
		case *kind.Type:
			types = append(types, k.Want...)
		case *kind.Required:
			names = append(names, strings.Join(k.Missing, " and "))
		case *kind.Const:
			values = append(values, valueText(k.Want))
		case *kind.Enum:
			for _, value := range k.Want {
				values = append(values, valueText(value))
			}
		}
	}
	switch {
	case len(names) == len(forms):
		return where, "must have " + orList(names)
	case len(types) >= len(forms) && len(names)+len(values) == 0:
		return where, "must be " + typeList(types)
	case len(values) >= len(forms) && len(names)+len(types) == 0:
		return where, "must be " + orList(values)
	}
	return path, "fits none of the allowed forms"
}

// onlyLeaf returns the failure of a form's const, or else the form's only failure; nil if there are several.
func onlyLeaf(form *jsonschema.ValidationError) *jsonschema.ValidationError {
	if leaf := constOf(form); leaf != nil {
		return leaf
	}
	var only *jsonschema.ValidationError
	for leaf := range leaves(form) {
		if only != nil {
			return nil
		}
		only = leaf
	}
	return only
}

// tooMany describes a value that must fit exactly one of several forms and fits more.
func (s *Schema) tooMany(location string, forms []int) string {
	var names []string
	for _, i := range forms {
		form, _ := lookUp(s.document, location, "oneOf", strconv.Itoa(i)).(map[string]any)
		required, _ := form["required"].([]any)
		for _, name := range required {
			names = append(names, fmt.Sprint(name))
		}
	}
	if len(names) == len(forms) && names[0] != names[1] {
		return "must not have both " + names[0] + " and " + names[1]
	}
	return "fits more than one of forms that exclude each other"
}
