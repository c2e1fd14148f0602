package hooks

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ohler55/ojg/jp"
)

// A job's template is JSON in which {"$path": "$.a.b"} stands for a part of the body, by a JSONPath, and {"$header":
// "Name"} for a header. Beside either, "default" is the value if the part is missing; without a default the request is
// refused.
const (
	pathMember, headerMember, defaultMember = "$path", "$header", "default"
)

// input is the part of a request that a template can use.
type input struct {
	body   any
	header http.Header
}

// node is a part of a template.
type node interface {
	value(in *input) (any, error)
}

type (
	constant struct{ of any }
	object   map[string]node
	list     []node
	path     struct {
		text string
		expr jp.Expr
		or   node // the default; nil: the request must have the part
	}
	header struct {
		name string
		or   node
	}
)

func compile(template any) (node, error) {
	switch t := template.(type) {
	case map[string]any:
		if t[pathMember] != nil || t[headerMember] != nil {
			return compileReference(t)
		}
		made := object{}
		for name, member := range t {
			of, err := compile(member)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			made[name] = of
		}
		return made, nil
	case []any:
		made := make(list, len(t))
		for i, element := range t {
			of, err := compile(element)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			made[i] = of
		}
		return made, nil
	}
	return constant{template}, nil
}

func compileReference(t map[string]any) (node, error) {
	var or node
	members := 1
	if missing, ok := t[defaultMember]; ok {
		or, members = constant{missing}, 2
	}
	where, isPath := t[pathMember].(string)
	name, isHeader := t[headerMember].(string)
	if isPath == isHeader || len(t) != members {
		return nil, errors.New(`a reference is {"$path": text} or {"$header": text}, with or without "default"`)
	}
	if isHeader {
		return header{name, or}, nil
	}
	expr, err := jp.ParseString(where)
	if err != nil {
		return nil, fmt.Errorf("JSONPath %q: %w", where, err)
	}
	if descents(expr) > 1 {
		return nil, fmt.Errorf("JSONPath %q: may have .. only once: each one multiplies the time that it takes", where)
	}
	return path{where, expr, or}, nil
}

// descents counts the .. of a path, and those in its filters.
func descents(expr jp.Expr) (n int) {
	for _, part := range expr {
		switch p := part.(type) {
		case jp.Descent:
			n++
		case *jp.Filter:
			n += strings.Count(p.String(), "..")
		}
	}
	return n
}

func (c constant) value(*input) (any, error) { return c.of, nil }

func (o object) value(in *input) (any, error) {
	made := make(map[string]any, len(o))
	// Sorted by name: if two members cannot be filled, the error always names the same one.
	for _, name := range slices.Sorted(maps.Keys(o)) {
		value, err := o[name].value(in)
		if err != nil {
			return nil, err
		}
		made[name] = value
	}
	return made, nil
}

func (l list) value(in *input) (any, error) {
	made := make([]any, len(l))
	for i, element := range l {
		value, err := element.value(in)
		if err != nil {
			return nil, err
		}
		made[i] = value
	}
	return made, nil
}

// value returns the part at the path. If the path matches several parts, it returns their list.
func (p path) value(in *input) (any, error) {
	found := p.expr.Get(in.body)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return found, nil
	case p.or != nil:
		return p.or.value(in)
	}
	return nil, fmt.Errorf("the body has nothing at %s", p.text)
}

func (h header) value(in *input) (any, error) {
	value := in.header.Get(h.name)
	switch {
	case value != "":
		return value, nil
	case h.or != nil:
		return h.or.value(in)
	}
	return nil, fmt.Errorf("the request has no header %s", h.name)
}
