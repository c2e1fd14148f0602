package helm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"github.com/jobweaver/jobweaver/ci/manifests"
)

// read reads values, each text over the ones before.
func read(t *testing.T, texts ...string) map[string]any {
	t.Helper()
	values := map[string]any{}
	for _, text := range texts {
		over := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(text), &over); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		values = loader.MergeMaps(values, over)
	}
	return values
}

func render(t *testing.T, texts ...string) []manifests.Object {
	t.Helper()
	objects, _, err := Render(read(t, texts...))
	if err != nil {
		t.Fatalf("%v\nof the values\n%s", err, strings.Join(texts, "\n"))
	}
	return objects
}

// look returns what stands in an object at a path as spec/template/spec/containers/0/env/[PORT]/value: a number is an
// index, and [NAME] the element of a list with that name. Without a path it is there. The end of a name may be a *.
func look(objects []manifests.Object, kind, name, at string) (string, error) {
	i := slices.IndexFunc(objects, func(o manifests.Object) bool {
		begins, isPattern := strings.CutSuffix(name, "*")
		return o.Kind == kind && (o.Name == name || isPattern && strings.HasPrefix(o.Name, begins))
	})
	if i < 0 {
		return "", fmt.Errorf("there is no %s %s", kind, name)
	}
	if at == "" {
		return "there", nil
	}
	var value any
	if err := yaml.Unmarshal(objects[i].YAML, &value); err != nil {
		return "", err
	}
	for _, step := range strings.Split(at, "/") {
		there := false
		switch here := value.(type) {
		case map[string]any:
			value, there = here[step]
		case []any:
			value, there = element(here, step)
		default:
			there = false
		}
		if !there {
			return "", fmt.Errorf("%s %s has no %s in %s", kind, name, step, at)
		}
	}
	if text, isText := value.(string); isText {
		return text, nil
	}
	text, err := yaml.Marshal(value)
	return strings.TrimSpace(string(text)), err
}

func element(list []any, step string) (any, bool) {
	name, named := strings.CutPrefix(step, "[")
	for i, one := range list {
		if fields, _ := one.(map[string]any); named && fields["name"] == strings.TrimSuffix(name, "]") {
			return one, true
		}
		if strconv.Itoa(i) == step {
			return one, true
		}
	}
	return nil, false
}

const (
	pod       = "spec/template/spec/"
	container = pod + "containers/0/"
	single    = "Deployment jobweaver-single "
)

func env(name string) string { return container + "env/[" + name + "]/value" }

// effect is what a value changes: what stands at a place of an object with it, and does not without.
type effect struct {
	value string // of values.yaml
	with  string // values that have it
	base  string // values that do not
	place string // kind, name, and path for look
	want  string // there; "gone": there is no such place
}

func (e effect) holds(objects []manifests.Object) error {
	part := strings.SplitN(e.place+" ", " ", 3)
	got, err := look(objects, part[0], part[1], strings.TrimSpace(part[2]))
	switch {
	case e.want == "gone" && err != nil:
		return nil
	case e.want == "gone":
		return fmt.Errorf("%s is %q", e.place, got)
	case err != nil:
		return err
	case got != e.want:
		return fmt.Errorf("%s is %q, not %q", e.place, got, e.want)
	}
	return nil
}

const (
	external  = "database: {existingSecret: db}\n"
	kafka     = external + "kafka: {brokers: ['a:9092', 'b:9092']}\n"
	serve     = kafka + "mode: serve\n"
	groups    = kafka + "mode: groups\n"
	functions = kafka + "mode: functions\n"
)

func TestEachValueHasItsEffect(t *testing.T) {
	t.Parallel()
	for _, e := range effects {
		t.Run(e.value, func(t *testing.T) {
			t.Parallel()
			if err := e.holds(renderLines(t, e.base+"\n"+e.with)); err != nil {
				t.Error(err)
			}
			if e.holds(renderLines(t, e.base)) == nil {
				t.Error("it is so without the value, too")
			}
		})
	}
}

// paths returns the values of values.yaml. Some are objects of Kubernetes or free maps, which are one value.
func paths(values map[string]any, prefix string) (all []string) {
	for name, value := range values {
		at := strings.TrimPrefix(prefix+"."+name, ".")
		inner, isMap := value.(map[string]any)
		if !isMap || len(inner) == 0 || at == "components" || at == "defaults.resources" {
			all = append(all, at)
			continue
		}
		all = append(all, paths(inner, at)...)
	}
	slices.Sort(all)
	return all
}

func chartValues(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Folder, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return read(t, string(text))
}

func TestEachValueIsTried(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	for _, e := range effects {
		tried[e.value] = true
	}
	all := paths(chartValues(t), "")
	for _, value := range all {
		if !tried[value] {
			t.Errorf("%s is tried by no test", value)
		}
	}
	for value := range tried {
		if !slices.Contains(all, value) {
			t.Errorf("%s is no value of values.yaml", value)
		}
	}
}

func TestValuesThatCannotWorkTogetherAreRefused(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"":                                      "the database is not set",
		kafka:                                   "mode single uses the broker in its process",
		external + "mode: serve":                "mode serve needs kafka.brokers",
		external + "mode: groups":               "mode groups needs kafka.brokers",
		external + "mode: some":                 "mode",
		external + "modes: serve":               "additional properties 'modes' not allowed",
		external + "settings: {logLevel: info}": "logLevel",
		"database: {url: 'mysql://a/b'}":        "does not match pattern",
		"database: {url: 'postgres://a/b', roles: services}": "database.roles services needs database.existingSecret",
		groups + "database: {roles: functions}":              "database.roles functions needs the mode functions",
		serve + "kafka: {sasl: {mechanism: PLAIN}}":          "kafka.sasl.mechanism needs kafka.sasl.existingSecret",
		external + "ingress: {enabled: true}":                "ingress.enabled needs ingress.host",
		external + "autoscaling: {keda: {enabled: true}}":    "autoscaling needs kafka",
		external + "components: {wroker: {replicas: 3}}":     "components.wroker is no Deployment",
		external + "components: {single: {replica: 3}}":      "additional properties 'replica' not allowed",
		external + "defaults: {replicas: many}":              "got string, want integer",
		external + "image: {digest: abc}":                    "does not match pattern",
	} {
		texts := strings.SplitAfter(values, "\n") // `kafka` of a later line is merged over that of an earlier one
		if _, _, err := Render(read(t, texts...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the values\n%s\nare refused with %v, without %q", values, err, want)
		}
	}
}
