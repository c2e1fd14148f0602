package knative

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// kustomization is the part of a kustomization, or of a component, that the manifests use. Any other field is an
// error, since the test would ignore its effect.
type kustomization struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Resources  []string `yaml:"resources"`
	Components []string `yaml:"components"`
	ConfigMaps []struct {
		Name     string   `yaml:"name"`
		Behavior string   `yaml:"behavior"`
		Envs     []string `yaml:"envs"`
		Literals []string `yaml:"literals"`
		Files    []string `yaml:"files"`
		Options  any      `yaml:"options"`
	} `yaml:"configMapGenerator"`
	Namespace string  `yaml:"namespace"`
	Patches   []patch `yaml:"patches"`

	Labels         any `yaml:"labels"`
	Configurations any `yaml:"configurations"`
	Images         any `yaml:"images"`
	Options        any `yaml:"generatorOptions"`
}

type raw = map[string]any

// readManifests reads the output of a kustomization, or a file with it.
func readManifests(path string) (all manifests, namespace string, err error) {
	objects, err := readResource(path)
	if err != nil {
		return nil, "", err
	}
	for _, one := range objects {
		if kind, _ := one["kind"].(string); !known[kind] {
			continue
		}
		text, err := yaml.Marshal(one)
		if err != nil {
			return nil, "", err
		}
		var o object
		if err := yaml.Unmarshal(text, &o); err != nil {
			return nil, "", fmt.Errorf("read %v: %w", one["metadata"], err)
		}
		if namespace == "" {
			namespace = o.Metadata.Namespace
		}
		all = append(all, o)
	}
	return all, namespace, nil
}

// readResource reads a file of objects, or builds those of a folder.
func readResource(path string) ([]raw, error) {
	at, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if at.IsDir() {
		return build(path, nil)
	}
	return readFile(path)
}

// build applies a folder's kustomization to the given objects, and to its own.
func build(folder string, all []raw) ([]raw, error) {
	text, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	var k kustomization
	if err := yaml.UnmarshalWithOptions(text, &k, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("read %s: %w", folder, err)
	}
	for _, resource := range k.Resources {
		found, err := readResource(filepath.Join(folder, resource))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for _, generated := range k.ConfigMaps {
		data, err := pairs(folder, generated.Envs, generated.Literals)
		if err != nil {
			return nil, err
		}
		all = merge(all, generated.Name, data)
	}
	for _, component := range k.Components {
		if all, err = build(filepath.Join(folder, component), all); err != nil {
			return nil, err
		}
	}
	for _, p := range k.Patches {
		if err := p.apply(folder, all); err != nil {
			return nil, err
		}
	}
	if k.Namespace != "" {
		for _, one := range all {
			if meta, ok := one["metadata"].(raw); ok {
				meta["namespace"] = k.Namespace
			}
		}
	}
	return all, nil
}

// merge adds data to a ConfigMap.
func merge(all []raw, name string, data raw) []raw {
	for _, one := range all {
		if meta, _ := one["metadata"].(raw); one["kind"] == "ConfigMap" && meta["name"] == name {
			maps.Copy(one["data"].(raw), data)
			return all
		}
	}
	return append(all, raw{"kind": "ConfigMap", "metadata": raw{"name": name}, "data": data})
}

// pairs returns the lines of env files, and literals.
func pairs(folder string, files, literals []string) (raw, error) {
	lines := slices.Clone(literals)
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			return nil, err
		}
		lines = append(lines, strings.Split(string(text), "\n")...)
	}
	data := raw{}
	for _, line := range lines {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		if !found {
			return nil, fmt.Errorf("%q is no setting", line)
		}
		data[name] = value
	}
	return data, nil
}

func readFile(file string) (all []raw, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	documents := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var one raw
		switch err := documents.Decode(&one); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", file, err)
		case len(one) > 0:
			all = append(all, one)
		}
	}
}
