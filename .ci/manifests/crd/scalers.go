package crd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Scalers are the parameters that KEDA's scalers read of a trigger. In its CustomResourceDefinition any text under any
// name is valid.
type Scalers map[string][]parameter

type parameter struct {
	Name     string
	Optional bool
	Default  string
	Allowed  []string `json:"allowedValue"`

	FromTrigger bool `json:"metadataVariableReadable"`
	FromEnv     bool `json:"envVariableReadable"`
	FromAuth    bool `json:"triggerAuthenticationVariableReadable"`
}

// LoadScalers reads the list that KEDA's build generates from its code.
func LoadScalers() (Scalers, error) {
	folder, err := fetch(keda)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(folder, "schema", "generated", "scalers-schema.json"))
	if err != nil {
		return nil, err
	}
	var read struct {
		Scalers []struct {
			Type       string
			Parameters []parameter
		}
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("scalers of %s: %w", keda.at, err)
	}
	scalers := Scalers{}
	for _, scaler := range read.Scalers {
		scalers[scaler.Type] = scaler.Parameters
	}
	return scalers, nil
}

// Check returns what is wrong with a trigger's metadata and with the parameters of its TriggerAuthentication.
func (s Scalers) Check(typ string, metadata map[string]string, authentication []string) error {
	known, there := s[typ]
	if !there {
		return fmt.Errorf("KEDA has no scaler %s", typ)
	}
	var problems []error
	for name, value := range metadata {
		at := slices.IndexFunc(known, func(p parameter) bool {
			return p.FromTrigger && p.Name == name || p.FromEnv && p.Name+"FromEnv" == name
		})
		switch {
		case at < 0:
			problems = append(problems, fmt.Errorf("%s does not read %s", typ, name))
		case len(known[at].Allowed) > 0 && !slices.Contains(known[at].Allowed, value):
			problems = append(problems, fmt.Errorf("%s is %s, not one of %v", name, value, known[at].Allowed))
		}
	}
	for _, name := range authentication {
		if !slices.ContainsFunc(known, func(p parameter) bool { return p.FromAuth && p.Name == name }) {
			problems = append(problems, fmt.Errorf("%s does not read %s of an authentication", typ, name))
		}
	}
	return errors.Join(append(problems, s.missing(typ, metadata)...)...)
}

// missing returns an error for each absent parameter that is required and that only the trigger can set.
func (s Scalers) missing(typ string, metadata map[string]string) (problems []error) {
	for _, p := range s[typ] {
		_, given := metadata[p.Name]
		_, fromEnv := metadata[p.Name+"FromEnv"]
		if p.FromTrigger && !p.FromAuth && !p.Optional && p.Default == "" && !given && !fromEnv {
			problems = append(problems, fmt.Errorf("%s has no %s", typ, p.Name))
		}
	}
	return problems
}
