package clients

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/jobweaver/initcmd"
	"github.com/jobweaver/jobweaver/shared/client"
)

// versions are the places that name the version, with the text before it. The contract's is compared with client.Version.
var versions = map[string]string{
	"functions/gateway/openapi.yaml":  "\n  version: ",
	"clients/typescript/package.json": `"version": "`,
	"clients/python/pyproject.toml":   "\nversion = \"",
	"infra/helm/jobweaver/Chart.yaml": "\nversion: ",
	"go.mod":                          "github.com/jobweaver/jobweaver/shared/client v",
}

func TestAllPackagesHaveTheVersionOfTheContract(t *testing.T) {
	t.Parallel()
	for file, before := range versions {
		if text := read(t, file); !strings.Contains(text, before+client.Version) {
			t.Errorf("%s has no %q", file, before+client.Version)
		}
	}
	for file, before := range map[string]string{
		"infra/helm/jobweaver/Chart.yaml": "\nappVersion: ", "clients/typescript/package-lock.json": `"version": "`,
	} {
		if text := read(t, file); !strings.Contains(text, before+client.Version) {
			t.Errorf("%s has no %q", file, before+client.Version)
		}
	}
	// What is released next is either that, or not yet named.
	released := regexp.MustCompile(`## \[(\d+\.\d+\.\d+)\]`).FindStringSubmatch(read(t, "CHANGELOG.md"))
	if released != nil && released[1] != client.Version {
		t.Errorf("the newest release of CHANGELOG.md is %s, and the version %s", released[1], client.Version)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lightGo are the modules of which programs with the client compile a package.
var lightGo = []string{
	"github.com/jobweaver/jobweaver/shared/client", "github.com/go-json-experiment/json",
	"github.com/standard-webhooks/standard-webhooks/libraries", "github.com/google/jsonschema-go",
}

func TestTheClientAndTheWorkerAreLight(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.Module.Path}}{{end}}", ".", "./worker")
	cmd.Dir = filepath.Join(root, "shared/client")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for module := range strings.FieldsSeq(string(out)) {
		if !slices.Contains(lightGo, module) {
			t.Errorf("the client brings %s", module)
		}
	}
}

// installs returns the command of a language in the table of docs/clients.md.
func installs(t *testing.T, language string) []string {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| " + language + " \\| `([^`]+)`").FindStringSubmatch(read(t, "docs/clients.md"))
	if row == nil {
		t.Fatalf("docs/clients.md has no command that installs the client for %s", language)
	}
	return strings.Fields(row[1])
}

// shows returns the first block of code of a page after a text.
func shows(t *testing.T, page, after, language string) string {
	t.Helper()
	_, text, _ := strings.Cut(read(t, page), after)
	block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```\n").FindStringSubmatch(text)
	if block == nil {
		t.Fatalf("%s shows no %s", page, language)
	}
	return block[1]
}

// clean runs commands in a folder.
type clean struct {
	dir string
	env []string
}

func (c clean) run(ctx context.Context, t *testing.T, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // those of the pages
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

func (c clean) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// installedFromPages installs each client in a clean folder by the command of the pages, from the packages of
// make packages, and runs the program that its page shows.
func installedFromPages(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	dist, err := filepath.Abs(filepath.Join(root, "dist"))
	if err != nil {
		t.Fatal(err)
	}
	for language, install := range map[string]func(context.Context, *testing.T, clean, string){
		"Go": inGo, "TypeScript": inTypeScript, "Python": inPython,
	} {
		t.Run("from the packages in "+language, func(t *testing.T) {
			install(ctx, t, clean{t.TempDir(), []string{"JOBWEAVER_URL=" + url}}, dist)
		})
	}
}

func inGo(ctx context.Context, t *testing.T, c clean, dist string) {
	t.Helper()
	out, err := exec.CommandContext(ctx, "go", "env", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	// A cache of its own: the module's version is not final, and the user's cache keeps what it once had.
	cache := t.TempDir()
	shared, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	c.env = append(c.env, "GOFLAGS=-modcacherw", "GOMODCACHE="+cache, "GONOSUMDB=github.com/jobweaver/*", "GOPROXY="+strings.Join([]string{
		"file://" + dist + "/go", "file://" + strings.TrimSpace(string(shared)) + "/cache/download", strings.TrimSpace(string(out)),
	}, ","))
	c.run(ctx, t, "go", "mod", "init", "example.org/shop")
	c.run(ctx, t, installs(t, "Go")...)
	c.write(t, "main.go", shows(t, "docs/clients.md", "clients/go/quickstart.go -->", "go"))
	c.run(ctx, t, "go", "mod", "tidy")
	if got := c.run(ctx, t, "go", "run", "."); !strings.Contains(got, "COMPLETED") {
		t.Errorf("the page's program printed\n%s", got)
	}
	for module := range strings.FieldsSeq(c.run(ctx, t, "go", "list", "-deps", "-f", "{{if not .Standard}}{{.Module.Path}}{{end}}", ".")) {
		if module != "example.org/shop" && !slices.Contains(lightGo, module) {
			t.Errorf("the program brings %s", module)
		}
	}
	project(ctx, t, c, "go", "the project", []string{"go", "mod", "tidy"}, []string{"go", "run", "."}, []string{"worker"}, []string{"submit"})
	if got := c.run(ctx, t, "go", "list", "-m", "all"); strings.Contains(got, "jobweaver/jobweaver v") {
		t.Errorf("the client needs the whole of JobWeaver:\n%s", got)
	}
}

func inTypeScript(ctx context.Context, t *testing.T, c clean, dist string) {
	t.Helper()
	tarball := filepath.Join(dist, "jobweaver-client-"+client.Version+".tgz")
	registry := httptest.NewServer(nil)
	t.Cleanup(registry.Close)
	var manifest map[string]any
	if err := json.Unmarshal([]byte(read(t, "clients/typescript/package.json")), &manifest); err != nil {
		t.Fatal(err)
	}
	manifest["dist"] = map[string]any{"tarball": registry.URL + "/client.tgz"}
	registry.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/client.tgz" {
			http.ServeFile(w, r, tarball)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"name": "@jobweaver/client", "dist-tags": map[string]string{"latest": client.Version},
			"versions": map[string]any{client.Version: manifest},
		})
	})
	c.write(t, ".npmrc", "@jobweaver:registry="+registry.URL+"\nfund=false\naudit=false\n")
	c.run(ctx, t, "npm", "init", "-y")
	c.run(ctx, t, installs(t, "TypeScript, JavaScript")...)
	project(ctx, t, c, "ts", "the project", []string{"npm", "install"}, []string{"npm", "run", "--silent"}, []string{"worker"}, []string{"submit", "--"})
	c.write(t, "main.mjs", shows(t, "clients/typescript/README.md", "", "ts"))
	if got := c.run(ctx, t, "node", "main.mjs"); !strings.Contains(got, "COMPLETED") {
		t.Errorf("the page's program printed\n%s", got)
	}
}

func inPython(ctx context.Context, t *testing.T, c clean, dist string) {
	t.Helper()
	c.run(ctx, t, "python3", "-m", "venv", "own")
	c.env = append(c.env, "PIP_FIND_LINKS="+dist, "PIP_DISABLE_PIP_VERSION_CHECK=1")
	command := installs(t, "Python, also with asyncio")
	command[0] = filepath.Join(c.dir, "own/bin", command[0])
	c.run(ctx, t, command...)
	python := filepath.Join(c.dir, "own/bin/python")
	install := []string{python, "-m", "pip", "install", "-r", "requirements.txt"}
	project(ctx, t, c, "python", "the project", install, []string{python}, []string{"worker.py"}, []string{"submit.py"})
	c.write(t, "main.py", shows(t, "clients/python/README.md", "", "python"))
	if got := c.run(ctx, t, python, "main.py"); !strings.Contains(got, "COMPLETED") {
		t.Errorf("the page's program printed\n%s", got)
	}
}

// project runs what jobweaver init writes: installs it, starts its worker, submits a job, and stops the worker.
func project(ctx context.Context, t *testing.T, c clean, kind, folder string, install, run, worker, submit []string) {
	t.Helper()
	c.dir = filepath.Join(c.dir, folder)
	if err := initcmd.Write(kind, c.dir); err != nil {
		t.Fatal(err)
	}
	if npmrc, err := os.ReadFile(filepath.Join(filepath.Dir(c.dir), ".npmrc")); err == nil {
		c.write(t, ".npmrc", string(npmrc))
	}
	c.run(ctx, t, install...)
	if kind == "ts" {
		c.run(ctx, t, "npm", "run", "check")
	}
	cmd := exec.CommandContext(ctx, run[0], slices.Concat(run[1:], worker)...) //nolint:gosec // a project of our own
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run and npm have children
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	jobs := client.FromEnv()
	for _, setting := range c.env {
		if url, ok := strings.CutPrefix(setting, "JOBWEAVER_URL="); ok {
			jobs = client.New(url, "")
		}
	}
	known := func() bool { // by the gateway, since the worker has started
		_, err := jobs.Submit(ctx, client.JobRequest{JobType: "greet", Queue: client.TaskQueue, Payload: map[string]string{"name": "test"}})
		return err == nil
	}
	for !known() {
		select {
		case <-ctx.Done():
			t.Fatal("the worker of the project did not describe its task")
		case <-time.After(100 * time.Millisecond):
		}
	}
	if got := c.run(ctx, t, slices.Concat(run, submit, []string{"Ada"})...); !strings.Contains(got, "Hello, Ada!") {
		t.Errorf("the project printed %q", got)
	}
}
