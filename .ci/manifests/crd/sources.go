package crd

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// module is a Go module whose source holds CustomResourceDefinitions. It is fetched for them alone: its code is no
// dependency of anything here.
type module struct {
	at    string // path@version
	sum   string // as in go.sum
	files []string
}

var keda = module{
	at:    "github.com/kedacore/keda/v2@v2.21.0",
	sum:   "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=",
	files: []string{"config/crd/bases/*.yaml"},
}

// The versions are those that docs/production.md installs.
var modules = []module{
	{
		at:    "knative.dev/operator@v0.50.0",
		sum:   "h1:71cMZmGUAlyYlzJpf5qfNC4cSKiahAjd0Hku3hMhzaw=",
		files: []string{"cmd/operator/kodata/eventing-source/1.23/kafka/eventing-kafka-controller.yaml"},
	},
	keda,
	{
		at:    "github.com/cloudnative-pg/cloudnative-pg@v1.30.0",
		sum:   "h1:fnhVq44xXx97MNiuvJsPrX1vSjYbgdyBK5MSGfdHdp0=",
		files: []string{"config/crd/bases/*.yaml"},
	},
	{
		at:    "github.com/cloudnative-pg/plugin-barman-cloud@v0.15.0",
		sum:   "h1:gNVytrzzYUE08wxLDrjfJqy1FPPSFkMe1OEr4s4pVI0=",
		files: []string{"config/crd/bases/*.yaml"},
	},
	{
		at:    "github.com/prometheus-operator/prometheus-operator@v0.85.0",
		sum:   "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
		files: []string{"example/prometheus-operator-crd/*.yaml"},
	},
}

// strimzi is made by strimzi/generate from Strimzi's own classes, which are Java. A line is a definition.
//
//go:embed strimzi/strimzi-1.2.0.jsonl
var strimzi []byte

// Load reads the definitions of everything that the manifests use beside Kubernetes and Knative's core.
func Load() (*Set, error) {
	set := &Set{kinds: map[schema.GroupVersionKind]func() (*checks, error){}}
	for _, line := range bytes.Split(bytes.TrimSpace(strimzi), []byte("\n")) {
		if err := set.add(line); err != nil {
			return nil, fmt.Errorf("definitions of Strimzi: %w", err)
		}
	}
	for _, module := range modules {
		folder, err := fetch(module)
		if err != nil {
			return nil, err
		}
		for _, pattern := range module.files {
			if err := set.addFiles(filepath.Join(folder, filepath.FromSlash(pattern))); err != nil {
				return nil, fmt.Errorf("definitions of %s: %w", module.at, err)
			}
		}
	}
	return set, nil
}

func (s *Set) addFiles(pattern string) error {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("no file %s", pattern)
	}
	for _, name := range names {
		file, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := s.add(file); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// fetch has the go command download the module into its cache, and returns its folder there.
func fetch(module module) (string, error) {
	var download struct{ Dir, Sum, Error string }
	out, err := exec.Command("go", "mod", "download", "-json", module.at).Output()
	if parsing := json.Unmarshal(out, &download); parsing != nil && err == nil {
		err = parsing
	}
	switch {
	case download.Error != "":
		return "", fmt.Errorf("fetch %s: %s", module.at, download.Error)
	case err != nil:
		return "", fmt.Errorf("fetch %s: %w", module.at, err)
	case download.Sum != module.sum:
		return "", fmt.Errorf("fetch %s: its sum is %s, not %s", module.at, download.Sum, module.sum)
	}
	return download.Dir, nil
}
