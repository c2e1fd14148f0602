// Package compose_test compares docker-compose.yml with the code, and starts the installation that it describes,
// without Docker.
package compose_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/jobweaver/jobweaver/migrations"
)

// root is the repository's.
const root = "../.."

// repository is the image's name without its tag.
const repository = "ghcr.io/jobweaver/jobweaver"

// load reads docker-compose.yml and .env as `docker compose` does, with the services of all profiles.
func load(t *testing.T, environment ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")},
		cli.WithWorkingDirectory(root), cli.WithEnv(environment), cli.WithEnvFiles(filepath.Join(root, ".env")), cli.WithDotEnv,
		cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// functions returns the folders of functions/ that contain a program.
func functions(t *testing.T) []string {
	t.Helper()
	commands, err := filepath.Glob(filepath.Join(root, "functions", "*", "cmd"))
	if err != nil || len(commands) == 0 {
		t.Fatalf("%d functions, %v", len(commands), err)
	}
	names := make([]string, len(commands))
	for i, command := range commands {
		names[i] = filepath.Base(filepath.Dir(command))
	}
	return names
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// values is an environment; a variable without a value is not set.
func values(t *testing.T, service types.ServiceConfig) map[string]string {
	t.Helper()
	set := map[string]string{}
	for name, value := range service.Environment {
		if value == nil {
			t.Fatalf("%s: %s has no value", service.Name, name)
		}
		set[name] = *value
	}
	return set
}

// ours are the services of our own image.
func ours(project *types.Project) []types.ServiceConfig {
	var list []types.ServiceConfig
	for _, service := range project.Services {
		if strings.HasPrefix(service.Image, repository+":") {
			list = append(list, service)
		}
	}
	slices.SortFunc(list, func(a, b types.ServiceConfig) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// runs returns the functions that a service runs.
func runs(t *testing.T, service types.ServiceConfig) (names []string) {
	t.Helper()
	if len(service.Command) == 2 && service.Command[0] == "function" {
		return service.Command[1:]
	}
	if len(service.Command) != 3 || !slices.Equal(service.Command[:2], []string{"serve", "--functions"}) {
		return nil
	}
	groups := map[string][]string{
		"api": migrations.API.Functions, "scheduler": migrations.Scheduler.Functions, "worker": {"runjob"},
	}
	for name := range strings.SplitSeq(service.Command[2], ",") {
		if group, is := groups[name]; is {
			names = append(names, group...)
		} else {
			names = append(names, name)
		}
	}
	return names
}

// once reports whether a service of ours ends when it has done its work.
func once(service types.ServiceConfig) bool {
	return service.Name == "secrets" || service.Name == "migrate"
}

func mounts(volumes []types.ServiceVolumeConfig, target string) bool {
	return slices.ContainsFunc(volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == target })
}
