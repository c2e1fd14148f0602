//go:build !nodev

package main

import (
	"bytes"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/migrations"
)

const serversPage = "docs/servers.md"

// The commands of docs/servers.md, with a folder in place of /etc/jobweaver, make the databases, the topics and a
// settings file for each function, with which the function connects to its database as its role.
func TestServersPageSetsUpAnInstallation(t *testing.T) {
	t.Parallel()
	postgres, err := localpostgres.Start(t.Context(), localpostgres.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = postgres.Stop() })
	kafka, err := localkafka.StartEmbedded(localkafka.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kafka.Stop() })
	server, err := url.Parse(postgres.URL())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, "jobweaver"))
	}
	if err != nil {
		t.Fatal(err)
	}
	script := strings.NewReplacer("/etc/jobweaver", dir, "db.example.org:5432", server.Host, "kafka.example.org:9092", kafka.Brokers()[0],
		"postgres://postgres:secret@db.example.org:5432/postgres", postgres.URL()).Replace(setUp(t))
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", script) //nolint:gosec // our docs
	cmd.Env = append(os.Environ(), processEnv+"=1", "PATH="+dir+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ports := map[string]string{}
	for _, set := range []migrations.Set{migrations.API, migrations.Scheduler, migrations.Worker} {
		for _, function := range set.Functions {
			settings := sourced(t, filepath.Join(dir, function+".env"))
			if other := ports[settings["PORT"]]; other != "" {
				t.Errorf("%s and %s have port %s", function, other, settings["PORT"])
			}
			ports[settings["PORT"]] = function
			if who := whoIs(t, settings["DATABASE_URL"]); who != "jobweaver_"+function+" in "+set.Database() {
				t.Errorf("%s is %s", function, who)
			}
		}
	}
	if queues := sourced(t, filepath.Join(dir, "all.env"))["QUEUES"]; queues != "default,pull" {
		t.Errorf("QUEUES is %q: pull has no queue, and does not start", queues)
	}
	doctor := exec.CommandContext(t.Context(), self, "doctor", "--env-dir", dir, "--skip", "disk") //nolint:gosec // ourselves
	doctor.Env = append(os.Environ(), processEnv+"=1")
	if out, err := doctor.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "\n0 findings\n") {
		t.Errorf("doctor: %v: %s", err, out)
	}
	if ports["8080"] != "gateway" || !strings.HasPrefix(sourced(t, filepath.Join(dir, "runjob.env"))["CALLBACK_SECRETS"], "whsec_") {
		t.Errorf("ports %v", ports)
	}
}

// setUp returns the commands of steps 1 and 2 of the page, adapted so that they run without root.
func setUp(t *testing.T) string {
	t.Helper()
	var script string
	for _, b := range blocksOf(t, serversPage) {
		if strings.HasPrefix(b.text, "install -d ") || strings.HasPrefix(b.text, "umask ") {
			script += b.text
		}
	}
	if strings.Count(script, "/etc/jobweaver") < 2 || !strings.Contains(script, "postgres://postgres:secret@db.example.org:5432/postgres") {
		t.Fatalf("the page has other commands than this test knows: %s", script)
	}
	return script
}

// sourced returns the settings of a file as the shell reads them. systemd reads the same, because they contain nothing
// to expand.
func sourced(t *testing.T, path string) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "env", "-i", "bash", "-c", `set -a; . "$1"; env`, "bash", path).Output() //nolint:gosec // a test's
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		settings[name] = value
	}
	return settings
}

func whoIs(t *testing.T, url string) (who string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if err := conn.QueryRow(t.Context(), "select current_user || ' in ' || current_database()").Scan(&who); err != nil {
		t.Fatal(err)
	}
	return who
}

// systemd itself checks the units, with an existing program in place of the functions.
func TestUnitsOfTheServersPageAreValid(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); errors.Is(err, exec.ErrNotFound) {
		t.Skip("there is no systemd-analyze")
	}
	text, err := os.ReadFile(filepath.Join(root, serversPage))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	names := strings.Split(string(text), "`/etc/systemd/system/")[1:]
	for _, part := range names {
		name, rest, _ := strings.Cut(part, "`\n\n```ini\n")
		unit, _, found := strings.Cut(rest, "```\n")
		if !found {
			t.Fatalf("%s has no unit below it", name)
		}
		unit = strings.NewReplacer("/opt/jobweaver/bin/%i", "/bin/true").Replace(unit)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(unit), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if len(names) != 2 {
		t.Fatalf("the page has %d units", len(names))
	}
	packaged, err := os.ReadFile(filepath.Join(root, "infra/package/jobweaver.service"))
	if err != nil {
		t.Fatal(err)
	}
	packaged = bytes.ReplaceAll(packaged, []byte("/usr/bin/jobweaver"), []byte("/bin/true"))
	if err := os.WriteFile(filepath.Join(dir, "jobweaver.service"), packaged, 0o600); err != nil {
		t.Fatal(err)
	}
	instance := filepath.Join(dir, "jobweaver@gateway.service") // a link to the template would hide unknown keys
	if err := os.Rename(filepath.Join(dir, "jobweaver@.service"), instance); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no",
		instance, filepath.Join(dir, "jobweaver.target"), filepath.Join(dir, "jobweaver.service")) //nolint:gosec // ours
	cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "jobweaver") {
		t.Errorf("%v: %s", err, out)
	}
}
