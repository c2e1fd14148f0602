package funchost

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/funchost/probe"
)

// checkHealth runs a function's binary with the argument healthcheck for the function at url.
func checkHealth(t *testing.T, url string, env ...string) (output string, code int) {
	t.Helper()
	_, port, err := net.SplitHostPort(url[strings.LastIndex(url, "/")+1:])
	if err != nil {
		t.Fatal(err)
	}
	cmd := newProcess(t, "good", append([]string{"PORT=" + port}, env...)...)
	cmd.Args = append(cmd.Args, healthcheck)
	var out bytes.Buffer
	cmd.Stderr = &out
	_ = cmd.Run()
	return out.String(), cmd.ProcessState.ExitCode()
}

// probed answers probes like a function.
func probed(t *testing.T, err error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/health/readiness" {
			t.Errorf("asked %s %s", r.Method, r.URL)
		}
		probe.Answer(w, err)
	})
}

func TestHealthcheckReportsWhetherTheFunctionIsReady(t *testing.T) {
	t.Parallel()
	up := serve(t, probed(t, nil).ServeHTTP)
	for _, host := range []string{"127.0.0.1", "0.0.0.0", "", "localhost"} {
		if output, code := checkHealth(t, up, "HOST="+host); code != 0 || output != "" {
			t.Errorf("HOST=%s: %d, %q", host, code, output)
		}
	}
	down := serve(t, probed(t, errors.New("store is away")).ServeHTTP)
	if output, code := checkHealth(t, down); code != 1 || output != "tested: 503 Service Unavailable: DOWN store is away\n" {
		t.Errorf("of one without its store: %d, %q", code, output)
	}
}

func TestHealthcheckUsesTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(probed(t, nil))
	t.Cleanup(server.Close)
	if output, code := checkHealth(t, server.URL, "TLS_CERT_FILE=its"); code != 0 {
		t.Errorf("%d, %q", code, output)
	}
	if output, code := checkHealth(t, server.URL); code != 1 || !strings.Contains(output, "400 Bad Request") {
		t.Errorf("without: %d, %q", code, output)
	}
}

func TestHealthcheckWithoutAFunctionFails(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{
		"PORT=1": "connection refused", "PORT=0": "tested: PORT: 0 is any free port", "PORT=x": `tested: PORT: "x" must be a whole number`,
	} {
		cmd := newProcess(t, "good", env)
		cmd.Args = append(cmd.Args, healthcheck)
		var out bytes.Buffer
		cmd.Stderr = &out
		_ = cmd.Run()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s, %q", env, cmd.ProcessState, &out)
		}
	}
}
