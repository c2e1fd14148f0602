package knative

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// patch is a patch of a kustomization, in the form of RFC 6902.
type patch struct {
	Target struct {
		Group string `yaml:"group"`
		Kind  string `yaml:"kind"`
		Name  string `yaml:"name"`
	} `yaml:"target"`
	Path  string `yaml:"path"`
	Patch string `yaml:"patch"`
}

type step struct {
	Op    string `yaml:"op"`
	Path  string `yaml:"path"`
	Value any    `yaml:"value"`
}

// apply changes the objects that the patch targets. A patch without one is an error: the test would run another
// installation.
func (p patch) apply(folder string, all []raw) error {
	text := []byte(p.Patch)
	if p.Path != "" {
		var err error
		if text, err = os.ReadFile(filepath.Join(folder, p.Path)); err != nil {
			return err
		}
	}
	fits := false
	for _, one := range all {
		if !p.fits(one) {
			continue
		}
		fits = true
		var steps []step // read for each object: they must not share the added values
		if err := yaml.UnmarshalWithOptions(text, &steps, yaml.Strict()); err != nil {
			return fmt.Errorf("read patch %s of %s: %w", p.Path, folder, err)
		}
		for _, s := range steps {
			if err := s.change(one); err != nil {
				return fmt.Errorf("patch %s of %s: %s %s: %w", p.Path, folder, s.Op, s.Path, err)
			}
		}
	}
	if !fits {
		return fmt.Errorf("patch %s of %s fits nothing", p.Path, folder)
	}
	return nil
}

func (p patch) fits(one raw) bool {
	meta, _ := one["metadata"].(raw)
	version, _ := one["apiVersion"].(string)
	group, _, grouped := strings.Cut(version, "/")
	if !grouped {
		group = ""
	}
	return (p.Target.Kind == "" || p.Target.Kind == one["kind"]) && (p.Target.Group == "" || p.Target.Group == group) &&
		(p.Target.Name == "" || regexp.MustCompile("^(?:"+p.Target.Name+")$").MatchString(fmt.Sprint(meta["name"])))
}

// change applies one step: to a member of an object, or to the end of a list, the only forms in use.
func (s step) change(one raw) error {
	parts := strings.Split(strings.TrimPrefix(s.Path, "/"), "/")
	for i, part := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	_, err := s.within(one, parts)
	return err
}

// within returns the value at a path after the step.
func (s step) within(at any, parts []string) (any, error) {
	last := len(parts) == 1
	switch at := at.(type) {
	case raw:
		switch {
		case last && s.Op == "remove":
			delete(at, parts[0])
			return at, nil
		case last:
			at[parts[0]] = s.Value
			return at, nil
		}
		inner, err := s.within(at[parts[0]], parts[1:])
		at[parts[0]] = inner
		return at, err
	case []any:
		if last && s.Op == "add" && parts[0] == "-" {
			return append(at, s.Value), nil
		}
		n, err := strconv.Atoi(parts[0])
		if err != nil || n < 0 || n >= len(at) || last && s.Op != "replace" {
			return at, fmt.Errorf("no such place in a list: %s", parts[0])
		}
		if last {
			at[n] = s.Value
			return at, nil
		}
		at[n], err = s.within(at[n], parts[1:])
		return at, err
	}
	return at, fmt.Errorf("nothing is at %s", parts[0])
}
