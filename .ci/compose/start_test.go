package compose_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/infra/localkafka"
)

var roots = flag.String("roots", "", "folder in which infra/image-root made what each image holds; empty: start no house")

func TestTheHouseStartsAsTheFileSaysAndDoesWhatTheReadmeSays(t *testing.T) {
	t.Parallel()
	if *roots == "" {
		t.Skip("no -roots: make test-compose starts it")
	}
	folder, err := filepath.Abs(*roots)
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, binaries{folder: folder, data: t.TempDir()}, localkafka.StartApache)
	h.try()
}

// try runs the README's commands, and a job of each kind that needs something of the file.
func (h *house) try() {
	h.t.Helper()
	said := h.readme()
	var accepted struct{ JobID, Status string }
	if err := json.NewDecoder(strings.NewReader(said)).Decode(&accepted); err != nil || accepted.JobID == "" {
		h.t.Fatalf("the README's curl was answered %s", said)
	}
	h.ended(accepted.JobID)
	for kind, job := range map[string]string{
		"a retry":  `{"jobType":"SIMULATION","retryPolicy":{"type":"fixed","delayMs":1},"payload":{"steps":[{"type":"FAIL","failAttempts":1}]}}`,
		"a mail":   `{"jobType":"EMAIL","payload":{"to":["ada@example.org"],"subject":"S","text":"It works."}}`,
		"a report": `{"jobType":"REPORT","payload":{"title":"T","format":"xlsx","columns":[{"name":"a"}],"rows":[["b"]]}}`,
	} {
		status, answer := h.ask(http.MethodPost, "/api/jobs", job)
		if err := json.Unmarshal(answer, &accepted); err != nil || status != http.StatusAccepted {
			h.t.Fatalf("%s: %d %s", kind, status, answer)
		}
		h.t.Logf("%s: %s", kind, h.ended(accepted.JobID))
	}
}

// readme runs the commands of the README's section, but for those of Docker.
func (h *house) readme() string {
	h.t.Helper()
	_, section, _ := strings.Cut(read(h.t, "README.md"), "\n## Run it with Docker Compose\n")
	_, commands, _ := strings.Cut(section, "```sh\n")
	commands, _, found := strings.Cut(commands, "```")
	if !found || strings.Count(commands, "http://localhost:8080") < 2 {
		h.t.Fatalf("the README's section has another form than this test reads: %s", section)
	}
	script := strings.ReplaceAll(commands, "http://localhost:8080", h.gateway)
	cmd := exec.CommandContext(h.t.Context(), "bash", "-euc", "docker() { :; }\n"+script)
	var out, errors bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, &out, &errors
	if err := cmd.Run(); err != nil {
		h.t.Fatalf("the README's commands: %v: %s", err, &errors)
	}
	return out.String()
}

// ended waits for a job and says its output.
func (h *house) ended(id string) string {
	h.t.Helper()
	_, answer := h.ask(http.MethodGet, "/api/jobs/"+id+"?wait=30s", "")
	var job struct {
		Status string
		Output json.RawMessage
	}
	if err := json.Unmarshal(answer, &job); err != nil || job.Status != "COMPLETED" {
		h.t.Fatalf("%s: %s", id, answer)
	}
	return string(job.Output)
}

func (h *house) ask(method, path, body string) (status int, answer []byte) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.gateway+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.project.Environment["BOOTSTRAP_API_KEY"])
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if answer, err = io.ReadAll(res.Body); err != nil {
		h.t.Fatal(fmt.Errorf("%s %s: %w", method, path, err))
	}
	return res.StatusCode, answer
}
