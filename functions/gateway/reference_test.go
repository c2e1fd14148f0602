package gateway_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"html/template"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

var update = flag.Bool("update", false, "write openapi.json and reference.html")

func TestTheReferenceIsMadeFromTheContract(t *testing.T) {
	doc := loadContract(t)
	compact, err := doc.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var asJSON bytes.Buffer
	if err := json.Indent(&asJSON, compact, "", " "); err != nil {
		t.Fatal(err)
	}
	asJSON.WriteByte('\n')
	page, err := template.New("reference.tmpl").
		Funcs(template.FuncMap{"kind": kind, "paragraphs": paragraphs}).ParseFiles("testdata/reference.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	var asHTML bytes.Buffer
	if err := page.Execute(&asHTML, newReference(doc)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{"openapi.json": asJSON.Bytes(), "reference.html": asHTML.Bytes()} {
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not made from openapi.yaml as it is: run go generate ./functions/gateway (%v)", name, err)
		}
	}
}

// reference is the contract as the template shows it.
type reference struct {
	Info    *openapi3.Info
	Groups  []group
	Schemas []namedSchema
}

type group struct {
	Tag        *openapi3.Tag
	Operations []referenceOperation
}

type referenceOperation struct {
	Method, Path string
	Op           *openapi3.Operation
	Parameters   []*openapi3.Parameter
	Body         *body
	Answers      []answer
}

type body struct {
	Description string
	Content     []content
}

type content struct {
	Type     string
	Schema   *openapi3.SchemaRef
	Examples []example
}

type answer struct {
	Status, Description string
	Schemas             []template.HTML
	Examples            []example
}

type example struct{ Name, JSON string }

type namedSchema struct {
	Name       string
	Schema     *openapi3.Schema
	Plain      *openapi3.SchemaRef // not the link to itself
	Properties []property
}

type property struct {
	Name     string
	Required bool
	Schema   *openapi3.SchemaRef
}

func newReference(doc *openapi3.T) reference {
	made := reference{Info: doc.Info}
	for _, tag := range doc.Tags {
		g := group{Tag: tag}
		for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
			all := doc.Paths.Value(path).Operations()
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				if op := all[method]; op != nil && slices.Contains(op.Tags, tag.Name) {
					g.Operations = append(g.Operations, newOperation(method, path, op))
				}
			}
		}
		made.Groups = append(made.Groups, g)
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		schema := doc.Components.Schemas[name].Value
		made.Schemas = append(made.Schemas, namedSchema{
			Name: name, Schema: schema, Plain: &openapi3.SchemaRef{Value: schema}, Properties: properties(schema),
		})
	}
	return made
}

func newOperation(method, path string, op *openapi3.Operation) referenceOperation {
	made := referenceOperation{Method: method, Path: path, Op: op}
	for _, p := range op.Parameters {
		made.Parameters = append(made.Parameters, p.Value)
	}
	if op.RequestBody != nil {
		made.Body = &body{op.RequestBody.Value.Description, contents(op.RequestBody.Value.Content)}
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses.Map())) {
		res := op.Responses.Value(status).Value
		a := answer{Status: status, Description: *res.Description}
		for _, c := range contents(res.Content) {
			if c.Schema != nil {
				a.Schemas = append(a.Schemas, kind(c.Schema))
			}
			if status < "300" {
				a.Examples = append(a.Examples, c.Examples...)
			}
		}
		made.Answers = append(made.Answers, a)
	}
	return made
}

func contents(all openapi3.Content) (made []content) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := content{Type: name, Schema: all[name].Schema}
		if value := all[name].Example; value != nil {
			c.Examples = append(c.Examples, example{"Example", indented(value)})
		}
		for _, title := range slices.Sorted(maps.Keys(all[name].Examples)) {
			c.Examples = append(c.Examples, example{"Example: " + title, indented(all[name].Examples[title].Value.Value)})
		}
		made = append(made, c)
	}
	return made
}

func properties(schema *openapi3.Schema) (made []property) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		made = append(made, property{name, slices.Contains(schema.Required, name), schema.Properties[name]})
	}
	for _, part := range schema.AllOf {
		made = append(made, properties(part.Value)...)
	}
	return made
}

func indented(value any) string {
	b, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func paragraphs(text string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(strings.TrimSpace(text), "\n\n", "\x00"), func(r rune) bool { return r == 0 })
}

// kind describes in a few words what a schema allows; a named schema is a link.
func kind(ref *openapi3.SchemaRef) template.HTML {
	switch {
	case ref == nil || ref.Value == nil:
		return "anything"
	case ref.Ref != "":
		name := template.HTMLEscapeString(ref.Ref[strings.LastIndex(ref.Ref, "/")+1:])
		return template.HTML(fmt.Sprintf(`<a href="#schema-%s">%s</a>`, name, name))
	}
	s := ref.Value
	for _, union := range []openapi3.SchemaRefs{s.OneOf, s.AnyOf, s.AllOf} {
		var parts []string
		for _, part := range union {
			parts = append(parts, string(kind(part)))
		}
		if len(parts) > 0 {
			return template.HTML(strings.Join(parts, map[bool]string{true: " and ", false: " or "}[len(s.AllOf) > 0]))
		}
	}
	text := "anything"
	if s.Type != nil {
		text = strings.Join(s.Type.Slice(), " or ")
	}
	if s.Items != nil {
		text += " of " + string(kind(s.Items))
	}
	return template.HTML(text + template.HTMLEscapeString(limits(s)))
}

func limits(s *openapi3.Schema) (text string) {
	add := func(format string, args ...any) { text += ", " + fmt.Sprintf(format, args...) }
	if len(s.Enum) > 0 {
		add("one of %v", s.Enum)
	}
	if s.Const != nil {
		add("always %v", s.Const)
	}
	if s.Format != "" {
		add("%s", s.Format)
	}
	if s.Min != nil {
		add("at least %v", *s.Min)
	}
	if s.Max != nil {
		add("at most %v", *s.Max)
	}
	if s.MinLength > 0 {
		add("at least %d characters", s.MinLength)
	}
	if s.MaxLength != nil {
		add("at most %d characters", *s.MaxLength)
	}
	if s.Pattern != "" {
		add("as %s", s.Pattern)
	}
	if s.Default != nil {
		add("default %v", s.Default)
	}
	return text
}
