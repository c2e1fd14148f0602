package compose_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/apikey"
)

const secretsFolder = "/run/secrets/"

// readers lists the services that mount each secret's folder, except for the service that makes it.
var readers = map[string][]string{
	"admin":     {"api"},
	"webhook":   {"api", "worker"},
	"callback":  {"api", "worker"},
	"server":    {"migrate", "postgres"},
	"api":       {"api", "migrate"},
	"scheduler": {"migrate", "scheduler"},
	"worker":    {"migrate", "worker"},
	"grafana":   {"grafana"},
}

// An administrator's key in .env would be known to each reader of the repository, and any web page in a browser
// on this machine could try it.
func TestNoSecretIsInTheRepository(t *testing.T) {
	t.Parallel()
	for _, path := range []string{".env", "docker-compose.yml", "infra/prometheus/prometheus.yml", "README.md"} {
		text := read(t, path)
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n\"'=:,;@/`", r) }) {
			if _, ok := apikey.Parse(word); ok {
				t.Errorf("%s has the API key %s", path, word)
			}
		}
		if found := regexp.MustCompile(`whsec_\w+|://\w+:[^@/\s]+@`).FindString(text); found != "" {
			t.Errorf("%s has %s", path, found)
		}
	}
	project := load(t)
	secret := regexp.MustCompile(`PASSWORD|SECRET|API_KEY|TOKEN|KEYSET|EVENT_KEYS`)
	for _, service := range project.Services {
		for name, value := range values(t, service) {
			if secret.MatchString(name) && !strings.HasPrefix(value, secretsFolder) {
				t.Errorf("%s: %s is %q, and no file that is made at the start", service.Name, name, value)
			}
		}
	}
	for name := range project.Environment {
		if secret.MatchString(name) && os.Getenv(name) == "" {
			t.Errorf(".env has %s", name)
		}
	}
	if len(project.Secrets) > 0 {
		t.Errorf("docker-compose.yml has secrets that no service makes: %v", project.Secrets)
	}
}

// An attacker who controls a worker must not find the admin's key beside its own.
func TestASecretIsMountedWhereItIsReadOnly(t *testing.T) {
	t.Parallel()
	project := load(t)
	got := map[string][]string{}
	for _, service := range project.Services {
		for _, volume := range service.Volumes {
			name, ours := strings.CutPrefix(volume.Source, "secret-")
			if !ours {
				continue
			}
			if volume.Target != secretsFolder+name {
				t.Errorf("%s: %s is at %s", service.Name, volume.Source, volume.Target)
			}
			if service.Name == "secrets" {
				continue
			}
			got[name] = append(got[name], service.Name)
			if !volume.ReadOnly {
				t.Errorf("%s may change %s", service.Name, volume.Source)
			}
		}
		for name, value := range values(t, service) {
			_, path, reads := strings.Cut(value, secretsFolder)
			if folder := secretsFolder + strings.Split(path, "/")[0]; reads && !mounts(service.Volumes, folder) {
				t.Errorf("%s: %s needs %s", service.Name, name, folder)
			}
		}
	}
	for name, services := range readers {
		slices.Sort(got[name])
		if !slices.Equal(got[name], services) {
			t.Errorf("%s is mounted by %v, want %v", name, got[name], services)
		}
		if !mounts(project.Services["secrets"].Volumes, filepath.Join(secretsFolder, name)) {
			t.Errorf("no service makes %s", name)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("others are mounted, too: %v", got)
	}
}
