package observability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
)

// prometheus is a real Prometheus server, on a port of its own.
type prometheus struct{ url string }

// startPrometheus starts a server that scrapes a fixture every second, with the repository's configuration except for
// the address, the interval and the path of the rules. It needs prometheus on the PATH.
func startPrometheus(t *testing.T, fixture string) prometheus {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatalf("prometheus, of the package of that name, is needed: %v", err)
	}
	dir, at := t.TempDir(), net.JoinHostPort("127.0.0.1", freeport.For(t))
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, configFor(t, fixture), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+at, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("output of prometheus\n%s", text)
		}
		_ = log.Close()
	})
	return prometheus{"http://" + at}
}

func configFor(t *testing.T, fixture string) []byte {
	t.Helper()
	rules, err := filepath.Abs(filepath.Join(infra, "prometheus"))
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	read(t, filepath.Join(infra, "prometheus/prometheus.yml"), func(text []byte) error {
		return yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), "/etc/prometheus", rules)), &config)
	})
	config["global"] = map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
	scrapes, _ := config["scrape_configs"].([]any)
	for i := range scrapes {
		scrape, _ := scrapes[i].(map[string]any)
		delete(scrape, "authorization") // this fixture needs no authentication
		delete(scrape, "dns_sd_configs")
		scrape["static_configs"] = []any{map[string]any{"targets": []string{fixture}}}
	}
	config["scrape_configs"] = scrapes[:1] // one process runs all functions
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ask runs a query and returns how many series it has.
func (p prometheus) ask(ctx context.Context, expr string) (series int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/query?query="+url.QueryEscape(expr), nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		return 0, fmt.Errorf("%s: %s", res.Status, body)
	}
	for _, one := range answer.Data.Result {
		if one.Value[1] != "NaN" {
			series++
		}
	}
	return series, nil
}

// awaitAll repeats the queries until all have results or ctx ends; left are the others, with the reason.
func (p prometheus) awaitAll(ctx context.Context, exprs []string) (left map[string]error) {
	left = map[string]error{}
	for _, expr := range exprs {
		left[expr] = errNoAnswer
	}
	for len(left) > 0 {
		for expr := range left {
			n, err := p.ask(ctx, expr)
			if ctx.Err() != nil {
				return left
			}
			switch {
			case n > 0:
				delete(left, expr)
			case err != nil:
				left[expr] = err
			}
		}
		timer := time.NewTimer(300 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return left
		}
	}
	return left
}

var errNoAnswer = errors.New("nothing answers")
