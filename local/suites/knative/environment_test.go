package knative

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// settingsName is the ConfigMap with the settings of all functions. kustomize adds a hash to it.
const settingsName = "jobweaver"

// secrets are the contents of the cluster's Secrets, by name and key.
type secrets map[string]map[string]string

// cluster holds what the manifests name but only the cluster knows.
type cluster struct {
	manifests manifests
	secrets   secrets
	settings  map[string]string // added by an operator to the ConfigMap of all settings
	moved     map[string]string // addresses that differ here, by setting
	dir       string
}

// environmentOf returns the environment of a function's container, as a process on this machine: the contents of its
// Secrets and ConfigMaps, their files in a folder of this process, and the local addresses.
func (c cluster) environmentOf(function string, pod podSpec) ([]string, error) {
	if len(pod.Containers) != 1 {
		return nil, fmt.Errorf("%s has %d containers", function, len(pod.Containers))
	}
	one := pod.Containers[0]
	all := map[string]string{}
	for _, from := range one.EnvFrom {
		values, err := c.values(from.ConfigMap, from.Secret)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", function, err)
		}
		maps.Copy(all, values)
	}
	for _, v := range one.Env {
		all[v.Name] = v.Value
		if v.ValueFrom == nil {
			continue
		}
		from := v.ValueFrom.ConfigMap
		if from == nil {
			from = v.ValueFrom.Secret
		}
		values, err := c.values(v.ValueFrom.ConfigMap, v.ValueFrom.Secret)
		if _, there := values[from.Key]; err != nil || !there {
			return nil, fmt.Errorf("%s: %s is of key %s of %s, which there is not: %w", function, v.Name, from.Key, from.Name, err)
		}
		all[v.Name] = values[from.Key]
	}
	folders, err := c.mount(function, pod)
	if err != nil {
		return nil, err
	}
	for name, value := range all {
		for path, folder := range folders {
			if value == path || strings.HasPrefix(value, path+"/") {
				all[name] = folder + strings.TrimPrefix(value, path)
			}
		}
		if here, moved := c.moved[name]; moved {
			all[name] = here
		}
	}
	env := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		env = append(env, name+"="+all[name])
	}
	return env, nil
}

// values returns the data of a ConfigMap or a Secret; a ConfigMap that occurs more than once is merged.
func (c cluster) values(configMap, secret *named) (map[string]string, error) {
	values := map[string]string{}
	switch {
	case configMap != nil:
		for _, o := range c.manifests.of("ConfigMap") {
			if o.Metadata.Name == configMap.Name {
				maps.Copy(values, o.Data)
			}
		}
		if configMap.Name == settingsName || strings.HasPrefix(configMap.Name, settingsName+"-") {
			maps.Copy(values, c.settings)
		}
	case secret != nil:
		values = c.secrets[secret.Name]
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("no ConfigMap or Secret of which %v, %v has a value", configMap, secret)
	}
	return values, nil
}

// mount writes the volumes of a container and returns their folders by the paths in the container.
func (c cluster) mount(function string, pod podSpec) (map[string]string, error) {
	folders := map[string]string{}
	for _, m := range pod.Containers[0].Mounts {
		i := slices.IndexFunc(pod.Volumes, func(v volume) bool { return v.Name == m.Name })
		if i < 0 {
			return nil, fmt.Errorf("%s mounts %s, which is no volume", function, m.Name)
		}
		folder := filepath.Join(c.dir, "volumes", function, m.Name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
		folders[m.Path] = folder
		from := pod.Volumes[i].Secret
		if from == nil {
			continue
		}
		if len(c.secrets[from.Name]) == 0 {
			return nil, fmt.Errorf("%s mounts Secret %s, which this test does not know", function, from.Name)
		}
		for key, text := range c.secrets[from.Name] {
			if path, wanted := from.pathOf(key); wanted {
				if err := os.WriteFile(filepath.Join(folder, path), []byte(text), 0o600); err != nil {
					return nil, err
				}
			}
		}
	}
	return folders, nil
}

// pathOf returns the file of a Secret's key, if the volume has one.
func (s *secretName) pathOf(key string) (string, bool) {
	for _, item := range s.Items {
		if item.Key == key {
			return item.Path, true
		}
	}
	return key, len(s.Items) == 0
}
