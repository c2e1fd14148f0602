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

// asking is the process that asks what listens at url.
func asking(t *testing.T, url string, env ...string) (said string, code int) {
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

// probed answers as a function does.
func probed(t *testing.T, err error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/health/readiness" {
			t.Errorf("asked %s %s", r.Method, r.URL)
		}
		probe.Answer(w, err)
	})
}

func TestABinaryAsksTheFunctionBesideItWhetherItIsReady(t *testing.T) {
	t.Parallel()
	up := serve(t, probed(t, nil).ServeHTTP)
	for _, host := range []string{"127.0.0.1", "0.0.0.0", "", "localhost"} {
		if said, code := asking(t, up, "HOST="+host); code != 0 || said != "" {
			t.Errorf("HOST=%s: %d, %q", host, code, said)
		}
	}
	down := serve(t, probed(t, errors.New("store is away")).ServeHTTP)
	if said, code := asking(t, down); code != 1 || said != "tested: 503 Service Unavailable: DOWN store is away\n" {
		t.Errorf("of one without its store: %d, %q", code, said)
	}
}

func TestABinaryAsksOverTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(probed(t, nil))
	t.Cleanup(server.Close)
	if said, code := asking(t, server.URL, "TLS_CERT_FILE=its"); code != 0 {
		t.Errorf("%d, %q", code, said)
	}
	if said, code := asking(t, server.URL); code != 1 || !strings.Contains(said, "400 Bad Request") {
		t.Errorf("without: %d, %q", code, said)
	}
}

func TestABinaryThatFindsNobodyToAsk(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{
		"PORT=1": "connection refused", "PORT=0": "tested: PORT: 0 is any free one", "PORT=x": `tested: PORT: "x" must be a whole number`,
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
