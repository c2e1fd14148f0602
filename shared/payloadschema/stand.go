package payloadschema

import (
	"errors"
	"reflect"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// standIn puts a function before each part of a schema, in the form of a format: the library checks the format of a
// value before it does anything that takes long. The function spends the part's cost if there is a budget, and checks
// the elements of arrays itself, because the library would report each of a hundred thousand wrong ones.
func standIn(root *jsonschema.Schema, b *budget) error {
	seen := map[*jsonschema.Schema]bool{root: true}
	for queue := []*jsonschema.Schema{root}; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		if s.DynamicRef != nil || s.RecursiveRef != nil {
			return errors.New("$dynamicRef is not supported")
		}
		for _, part := range parts(s) {
			if !seen[part] {
				seen[part] = true
				queue = append(queue, part)
			}
		}
		if s.Bool == nil {
			defer before(s, b) // when all parts have been found
		}
	}
	return nil
}

func before(s *jsonschema.Schema, b *budget) {
	own := s.Format
	format := jsonschema.Format{Name: "list"}
	if own != nil {
		format.Name = own.Name
	}
	list := elements{from: len(s.PrefixItems), items: s.Items2020, most: s.MaxItems}
	atOnce, each := weigh(s)
	s.Items2020 = nil
	format.Validate = func(v any) error {
		if b != nil {
			b.spend(atOnce + each*size(v))
		}
		if array, ok := v.([]any); ok {
			if err := list.check(array); err != nil {
				return err
			}
		}
		if own != nil {
			return own.Validate(v)
		}
		return nil
	}
	s.Format = &format
}

func size(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	case string:
		return len(v) / patternCost // the cost of counting its characters and checking its format
	}
	return 0
}

// elements is what a schema requires of an array's elements.
type elements struct {
	from  int // the elements before it belong to prefixItems
	items *jsonschema.Schema
	most  *int
}

// wrongElements has the first wrong elements, with their indexes.
type wrongElements struct {
	at  []int
	why []*jsonschema.ValidationError
}

func (*wrongElements) Error() string { return "elements are wrong" }

type tooManyElements struct{ got, want int }

func (tooManyElements) Error() string { return "too many elements" }

func (l elements) check(array []any) error {
	if l.most != nil && len(array) > *l.most {
		return tooManyElements{len(array), *l.most}
	}
	if l.items == nil {
		return nil
	}
	var wrong *wrongElements
	for i := l.from; i < len(array); i++ {
		var why *jsonschema.ValidationError
		if !errors.As(l.items.Validate(array[i]), &why) {
			continue
		}
		if wrong == nil {
			wrong = &wrongElements{}
		}
		wrong.at, wrong.why = append(wrong.at, i), append(wrong.why, why)
		if len(wrong.at) >= strictjson.MaxProblems {
			break
		}
	}
	if wrong == nil { // a nil of this type would be an error
		return nil
	}
	return wrong
}

// settle converts the errors of a part's function to the form in which the library would have returned them.
func settle(e *jsonschema.ValidationError, above []string) {
	e.InstanceLocation = slices.Concat(above, e.InstanceLocation)
	format, _ := e.ErrorKind.(*kind.Format)
	if format == nil {
		for _, cause := range e.Causes {
			settle(cause, above)
		}
		return
	}
	switch why := format.Err.(type) { //nolint:errorlint // it is what check gave
	case tooManyElements:
		e.ErrorKind = &kind.MaxItems{Got: why.got, Want: why.want}
	case *wrongElements:
		e.ErrorKind, e.Causes = &kind.Group{}, why.why
		for i, cause := range why.why {
			settle(cause, append(slices.Clone(e.InstanceLocation), strconv.Itoa(why.at[i])))
		}
	}
}

// parts returns the schemas that a schema contains or to which it refers, at any place.
func parts(s *jsonschema.Schema) (found []*jsonschema.Schema) {
	var look func(v reflect.Value)
	look = func(v reflect.Value) {
		switch kind := v.Kind(); {
		case kind == reflect.Pointer:
			if part, ok := v.Interface().(*jsonschema.Schema); ok && part != nil {
				found = append(found, part)
			}
		case kind == reflect.Interface:
			look(v.Elem())
		case kind == reflect.Slice:
			for i := range v.Len() {
				look(v.Index(i))
			}
		case kind == reflect.Map:
			for entries := v.MapRange(); entries.Next(); {
				look(entries.Value())
			}
		}
	}
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			look(v.Field(i))
		}
	}
	return found
}
