// Command show writes the chart as it is rendered with the values of files, each over the ones before.
package main

import (
	"fmt"
	"os"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"github.com/jobweaver/jobweaver/ci/helm"
)

func main() {
	if err := show(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func show(files []string) error {
	values := map[string]any{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		over := map[string]any{}
		if err := yaml.Unmarshal(text, &over); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		values = loader.MergeMaps(values, over)
	}
	objects, notes, err := helm.Render(values)
	if err != nil {
		return err
	}
	for _, object := range objects {
		fmt.Printf("---\n%s", object.YAML)
	}
	_, err = fmt.Fprint(os.Stderr, notes)
	return err
}
