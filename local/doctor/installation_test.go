package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Not parallel: it sets the environment.
func TestSettingsThatCannotBeReadAreFoundAndTheRestIsChecked(t *testing.T) {
	for name, value := range map[string]string{
		"DATABASE_URL": "postgres://jobweaver:hunter2000@127.0.0.1:1/postgres", "PORT": "many", "AUHT": "off",
		"WEBHOOK_SECRETS": "whsec_c2hvcnQ=", "PUBLIC_URL": "jobs.example.org", "KAFKA_BROKERS": "127.0.0.1:1",
		"KAFKA_SASL_USERNAME": "jobweaver", "API_DATABASE_URL_FILE": file(t, "postgres://127.0.0.1:1/own", 0o644),
	} {
		t.Setenv(name, value)
	}
	i, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	var whats []string
	for _, r := range Run(t.Context(), i, nil) {
		for _, f := range r.Findings {
			whats = append(whats, r.Check+": "+f.What)
		}
	}
	for _, want := range []string{
		"settings: PORT:", "settings: unknown variable AUHT", "settings: PUBLIC_URL:", "settings: KAFKA_SASL_MECHANISM:",
		"secrets: WEBHOOK_SECRETS: number 1", "secrets: every user of the machine can read", "database: it cannot be used",
	} {
		if !slices.ContainsFunc(whats, func(what string) bool { return strings.HasPrefix(what, want) }) {
			t.Errorf("%q has no %s", whats, want)
		}
	}
	if i.Databases[0].Acts || !i.Databases[1].Acts {
		t.Errorf("only the api has a user of its own: %+v", i.Databases)
	}
	if os.Getenv("PORT") != "many" {
		t.Error("the environment has changed")
	}
}

// Not parallel: it reads the environment.
func TestAFolderHasTheSettingsOfEachFunction(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://of-another-program")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"all.env":     "# of all\nKAFKA_BROKERS=127.0.0.1:1\nQUEUES=default,mail\n",
		"gateway.env": "DATABASE_URL='postgres://g@127.0.0.1:1/jobweaver_api'\nWEBHOOK_SECRETS=\"whsec_x\"\n",
		"runjob.env":  "QUEUES=default\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	i, err := LoadFolder(dir)
	if err != nil || len(i.Environments) != 2 || len(i.Databases) != 1 {
		t.Fatalf("%+v, %v", i, err)
	}
	gateway, runjob := i.Environments[0], i.Environments[1]
	if gateway.Name != "gateway" || gateway.Webhook.Secrets.Reveal()[0] != "whsec_x" || !slices.Equal(gateway.Host.Queues, []string{"default", "mail"}) {
		t.Errorf("the gateway has %+v", gateway)
	}
	if len(runjob.Wrong) != 1 || !strings.Contains(runjob.Wrong[0].Error(), "DATABASE_URL: is not set") || len(runjob.Host.Queues) != 1 {
		t.Errorf("runjob has %+v", runjob)
	}
	if _, err := LoadFolder(t.TempDir()); err == nil {
		t.Error("an empty folder is an installation")
	}
}
