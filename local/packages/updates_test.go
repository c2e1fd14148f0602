package main

import (
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// namesDependencies are the files that name dependencies, with the ecosystem of Dependabot that updates them.
var namesDependencies = map[string]string{
	"go.mod": "gomod", "package.json": "npm", "requirements.txt": "pip", "pom.xml": "maven",
	"Dockerfile": "docker", "docker-compose.yml": "docker-compose",
}

func TestDependabotUpdatesEachFileThatNamesDependenciesAndNoOther(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../.github/dependabot.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directory   string
			Directories []string
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = "../.."
	files, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{} // ecosystem and folder → whether it is updated
	for file := range strings.FieldsSeq(string(files)) {
		if ecosystem, names := namesDependencies[path.Base(file)]; names {
			there[ecosystem+" "+path.Clean("/"+path.Dir(file))] = false
		}
	}
	for _, update := range config.Updates {
		if update.Ecosystem == "github-actions" {
			continue
		}
		for _, pattern := range append(update.Directories, update.Directory) {
			found := pattern == ""
			for place := range there {
				ecosystem, folder, _ := strings.Cut(place, " ")
				if matches, _ := path.Match(pattern, folder); matches && ecosystem == update.Ecosystem {
					found, there[place] = true, true
				}
			}
			if !found {
				t.Errorf("there is no %s in %s", update.Ecosystem, pattern)
			}
		}
	}
	for place, updated := range there {
		if !updated {
			t.Errorf(".github/dependabot.yml has no %s", place)
		}
	}
}
