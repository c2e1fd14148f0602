package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// process returns the command line as a process of its own.
func process(t *testing.T, env []string, args ...string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...) //nolint:gosec // ourselves
	cmd.Env = append(append(os.Environ(), processEnv+"=1"), env...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// As Knative runs it: no Kafka, and events over HTTP.
func TestFunctionRunsOneFunctionUntilItIsStopped(t *testing.T) {
	t.Parallel()
	env := []string{
		"DATABASE_URL=" + pgtest.Database(t, migrations.API), "HOST=127.0.0.1", "PORT=" + freeport.For(t),
		"FUNC_TRANSPORT=http", "K_SINK=http://127.0.0.1:1", "WEBHOOK_SECRETS=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	}
	cmd, out := process(t, env, "function", "notify")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testwait.Retry(t, func() error {
		check, _ := process(t, env, "healthcheck")
		return check.Run()
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), `"service":"notify"`) {
		t.Errorf("it ended with %v: %s", err, out)
	}
	check, _ := process(t, env, "healthcheck")
	if err := check.Run(); err == nil {
		t.Error("it is ready after its end")
	}
}

func TestFunctionThatCannotStartLogsWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code int
		want string
	}{
		"watchdog": {cli.ExitFailed, `"service":"watchdog","error":"DATABASE_URL: is not set"}`},
		"relay":    {cli.ExitFailed, `"service":"relay","error":"RELAY_DATABASES`}, // and no DATABASE_URL
		"nowhere":  {cli.ExitUsage, `there is no function "nowhere"`},
	} {
		cmd, out := process(t, []string{"DATABASE_URL=", "KAFKA_BROKERS=127.0.0.1:1"}, "function", name)
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(out.String(), c.want) || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%s ended with %d: %s", name, code, out)
		}
	}
}

func TestFunctionCompletesTheNamesOfFunctions(t *testing.T) {
	t.Parallel()
	if out, err := run(t, "", "__complete", "function", ""); err != nil || !strings.Contains(out, "gateway\n") || !strings.Contains(out, "relay\n") {
		t.Errorf("%v, %s", err, out)
	}
}
