package knative

import (
	"fmt"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
)

// legacy is Trigger.spec.filter.
type legacy struct {
	Attributes map[string]string `yaml:"attributes"`
}

// filter is one of Trigger.spec.filters: one dialect.
type filter struct {
	Exact  map[string]string `yaml:"exact"`
	Prefix map[string]string `yaml:"prefix"`
	Suffix map[string]string `yaml:"suffix"`
	All    []filter          `yaml:"all"`
	Any    []filter          `yaml:"any"`
	Not    *filter           `yaml:"not"`
	CESQL  string            `yaml:"cesql"`
}

// passes reports whether an event passes all filters of a Trigger. Filters replace the legacy filter.
func passes(o object, e event.Event) (bool, error) {
	if len(o.Spec.Filters) > 0 {
		return all(o.Spec.Filters, e)
	}
	if o.Spec.Filter == nil {
		return true, nil
	}
	for name, want := range o.Spec.Filter.Attributes {
		if got, there := attribute(e, name); want == "" && !there || want != "" && got != want {
			return false, nil
		}
	}
	return true, nil
}

func all(filters []filter, e event.Event) (bool, error) {
	for _, f := range filters {
		if ok, err := f.passes(e); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (f filter) passes(e event.Event) (bool, error) {
	switch {
	case f.Exact != nil:
		return each(f.Exact, e, func(got, want string) bool { return got == want }), nil
	case f.Prefix != nil:
		return each(f.Prefix, e, strings.HasPrefix), nil
	case f.Suffix != nil:
		return each(f.Suffix, e, strings.HasSuffix), nil
	case f.All != nil:
		return all(f.All, e)
	case f.Any != nil:
		for _, one := range f.Any {
			if ok, err := one.passes(e); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	case f.Not != nil:
		ok, err := f.Not.passes(e)
		return !ok, err
	}
	return false, fmt.Errorf("no filter that this broker knows: %+v", f)
}

func each(wanted map[string]string, e event.Event, fits func(got, want string) bool) bool {
	for name, want := range wanted {
		if got, there := attribute(e, name); !there || !fits(got, want) {
			return false
		}
	}
	return true
}

// attribute returns a context attribute, or an extension, as text.
func attribute(e event.Event, name string) (string, bool) {
	switch name {
	case "id":
		return e.ID(), true
	case "type":
		return e.Type(), true
	case "source":
		return e.Source(), true
	case "specversion":
		return e.SpecVersion(), true
	case "subject":
		return e.Subject(), e.Subject() != ""
	case "datacontenttype":
		return e.DataContentType(), e.DataContentType() != ""
	}
	value, there := e.Extensions()[name]
	if !there {
		return "", false
	}
	text, err := types.Format(value)
	return text, err == nil
}
