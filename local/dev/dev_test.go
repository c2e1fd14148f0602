package dev_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/local/demo"
	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/local/mailcatch"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/client"
)

func options(t *testing.T, dir string) dev.Options {
	t.Helper()
	return dev.Options{
		Dir: dir, Kafka: "embedded", Queues: []string{"default"}, Out: t.Output(), Metrics: prometheus.NewRegistry(),
	}
}

func TestTheInstallationRunsTheDemoAndFindsItsDataAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mails, err := mailcatch.Start(mailcatch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mails.Close() })
	o := options(t, dir)
	o.Mails = mails
	err = dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		return demo.Run(ctx, client.New(url, ""), demo.Installation{MailPage: mails.URL()}, t.Output())
	})
	if err != nil {
		t.Fatal(err)
	}
	err = dev.Run(t.Context(), options(t, dir), func(ctx context.Context, at string) error {
		c := client.New(at, "")
		page, err := c.ListPage(ctx, client.Filter{Status: []string{"FAILED"}}, 0, "")
		failed := page.Jobs
		if err != nil || len(failed) != 1 {
			t.Errorf("%d failed jobs of the first run, %v", len(failed), err)
			return err
		}
		// The data still works: a failed job is retried, and fails again.
		if _, err := c.Command(ctx, failed[0].JobID, "retry"); err != nil {
			return err
		}
		again, err := client.Follow(ctx, c, failed[0].JobID, func(*client.Job) {})
		for err == nil && again.Attempt == failed[0].Attempt { // the API has no status of the retry yet
			again, err = client.Follow(ctx, c, failed[0].JobID, func(*client.Job) {})
		}
		if err == nil && (again.Status != "FAILED" || again.Attempt != failed[0].Attempt+2) {
			t.Errorf("after the retry: %s at attempt %d", again.Status, again.Attempt)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnInstallationThatCannotStartPrintsWhyInOneLine(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	for name, c := range map[string]struct {
		change func(*dev.Options)
		want   string
	}{
		"a port that is taken": {func(o *dev.Options) { o.Port = taken.Addr().(*net.TCPAddr).Port }, "--port"},
		"an unknown broker":    {func(o *dev.Options) { o.Kafka = "rabbit" }, "--kafka"},
		"an unknown part":      {func(o *dev.Options) { o.Only = []string{"redis"} }, "--only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, t.TempDir())
			c.change(&o)
			err := dev.Run(t.Context(), o, func(context.Context, string) error { return nil })
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// dev --only prints a script that starts each function with its own port and the URL with its role. A stub in place
// of the binaries prints its environment.
func TestDevPrintsLinesThatRunTheFunctions(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := options(t, newFolder(t))
	o.Only, o.Port = []string{"postgres", "kafka"}, 18080
	var script strings.Builder
	started := map[string]string{}
	o.Out = writer(func(line string) {
		script.WriteString(line)
		if strings.Contains(line, "Ctrl-C") {
			started = startedBy(t, script.String())
			cancel()
		}
	})
	if err := dev.Run(ctx, o, nil); err != nil {
		t.Fatal(err)
	}
	ports := map[string]bool{}
	for _, set := range []migrations.Set{migrations.API, migrations.Scheduler, migrations.Worker} {
		for _, function := range set.Functions {
			given := append(strings.Fields(started[function]), "")
			if len(given) != 5 || given[1] != "jobweaver_"+function+"@"+set.Database() || given[2] != "http://127.0.0.1:18080/api/jobs/callback" ||
				!strings.HasPrefix(given[3], "127.0.0.1:") || ports[given[0]] || function == "gateway" && given[0] != "18080" {
				t.Errorf("%s is started with %q", function, given)
			}
			ports[given[0]] = true
		}
	}
	if strings.Contains(script.String(), "whsec_") {
		t.Error("a secret is printed")
	}
}

// startedBy runs the script, and returns by function its port, role@database, CALLBACK_URL and KAFKA_BROKERS.
func startedBy(t *testing.T, script string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-c", script+"\nwait")
	cmd.Dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(cmd.Dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	const stub = `#!/bin/bash
at=${DATABASE_URL#postgres://} database=${DATABASE_URL##*/}
[[ -s $WEBHOOK_SECRETS_FILE && -s $CALLBACK_SECRETS_FILE ]] && echo "$(basename "$0") $PORT ${at%%:*}@${database%%\?*} $CALLBACK_URL $KAFKA_BROKERS"
`
	for _, set := range []migrations.Set{migrations.API, migrations.Scheduler, migrations.Worker} {
		for _, function := range set.Functions {
			if err := os.WriteFile(filepath.Join(cmd.Dir, "bin", function), []byte(stub), 0o755); err != nil { //nolint:gosec // it is run
				t.Fatal(err)
			}
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, script, out)
	}
	started := map[string]string{}
	for line := range strings.Lines(string(out)) {
		function, given, _ := strings.Cut(strings.TrimSpace(line), " ")
		started[function] = given
	}
	return started
}

type writer func(text string)

func (w writer) Write(text []byte) (int, error) {
	w(string(text))
	return len(text), nil
}
