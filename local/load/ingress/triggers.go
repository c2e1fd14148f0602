package ingress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"
)

// trigger is a Trigger with the address of its subscriber.
type trigger struct {
	name  string
	any   []map[string]string // attributes with their values; an event must match one of the maps
	url   string              // of a function
	topic string              // of a KafkaSink
	busy  chan struct{}
}

// object has the needed fields of a manifest.
type object struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	Spec struct {
		Topic   string `yaml:"topic"`
		Filters []struct {
			Exact map[string]string `yaml:"exact"`
			Any   []struct {
				Exact map[string]string `yaml:"exact"`
			} `yaml:"any"`
		} `yaml:"filters"`
		Subscriber struct {
			Ref struct {
				Kind string `yaml:"kind"`
				Name string `yaml:"name"`
			} `yaml:"ref"`
		} `yaml:"subscriber"`
	} `yaml:"spec"`
}

func readTriggers(cfg Config) ([]*trigger, error) {
	objects, err := readObjects(cfg.Manifests)
	if err != nil {
		return nil, fmt.Errorf("read triggers: %w", err)
	}
	topics := map[string]string{}
	for _, o := range objects {
		if o.Kind == "KafkaSink" {
			topics[o.Metadata.Name] = o.Spec.Topic
		}
	}
	var triggers []*trigger
	for _, o := range objects {
		if o.Kind != "Trigger" {
			continue
		}
		t := &trigger{name: o.Metadata.Name, busy: make(chan struct{}, atOnce)}
		ref := o.Spec.Subscriber.Ref
		if ref.Kind == "KafkaSink" {
			t.topic = topics[ref.Name]
		} else {
			t.url = cfg.Functions[ref.Name]
		}
		if t.url == "" && t.topic == "" {
			continue
		}
		if len(o.Spec.Filters) != 1 {
			return nil, fmt.Errorf("trigger %s: has %d filters, not one", t.name, len(o.Spec.Filters))
		}
		if exact := o.Spec.Filters[0].Exact; exact != nil {
			t.any = append(t.any, exact)
		}
		for _, one := range o.Spec.Filters[0].Any {
			t.any = append(t.any, one.Exact)
		}
		triggers = append(triggers, t)
	}
	return triggers, nil
}

func readObjects(folder string) ([]object, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var all []object
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for documents := yaml.NewDecoder(bytes.NewReader(text)); ; {
			var o object
			err := documents.Decode(&o)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			all = append(all, o)
		}
	}
	return all, nil
}
