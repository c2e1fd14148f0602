package compose_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

var imageRoot = flag.String("image.root", "", "the / of the image, which infra/image-root made; empty: start no installation")

func TestTheInstallationStartsFromTheFileAndRunsTheReadmesCommands(t *testing.T) {
	t.Parallel()
	if *imageRoot == "" {
		t.Skip("no -image.root: make test-compose starts it")
	}
	app, err := filepath.Abs(filepath.Join(*imageRoot, "app"))
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, "var/jobweaver"), 0o700); err != nil {
		t.Fatal(err)
	}
	h := newInstallation(t, binaries{app: app, data: data}, localkafka.StartApache)
	h.try()
}

// try runs the README's commands, and runs a job of each type that depends on something in the file.
func (h *installation) try() {
	h.t.Helper()
	answer := h.readme()
	h.key = h.secret("api", values(h.t, h.project.Services["api"])["BOOTSTRAP_API_KEY_FILE"])
	var accepted struct{ JobID, Status string }
	if err := json.NewDecoder(strings.NewReader(answer)).Decode(&accepted); err != nil || accepted.JobID == "" {
		h.t.Fatalf("the README's curl was answered %s", answer)
	}
	h.ended(accepted.JobID)
	testwait.CheckPromptly(h.t, "from the start of PostgreSQL and Kafka to the first job it", time.Since(h.began), time.Minute)
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
	h.pulls()
	h.ownRoles()
	h.secondStart()
}

// ownRoles checks that each service is connected to its own database, with a role that may nothing else.
func (h *installation) ownRoles() {
	h.t.Helper()
	conn, err := pgx.Connect(h.t.Context(), "postgres://postgres:"+h.secret("postgres", secretsFolder+"server/password")+"@"+h.server)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = conn.Close(h.t.Context()) }()
	var connected, mighty string
	if err := conn.QueryRow(h.t.Context(), `SELECT string_agg(DISTINCT usename || ' in ' || datname, ', ' ORDER BY usename || ' in ' || datname),
			coalesce((SELECT string_agg(rolname, ', ') FROM pg_roles WHERE rolname LIKE 'jobweaver%'
				AND (rolsuper OR rolcreatedb OR rolcreaterole OR pg_has_role(oid, 'postgres', 'MEMBER'))), '')
		FROM pg_stat_activity WHERE datname LIKE 'jobweaver%'`).Scan(&connected, &mighty); err != nil {
		h.t.Fatal(err)
	}
	if connected != "jobweaver_api in jobweaver_api, jobweaver_scheduler in jobweaver_scheduler, jobweaver_worker in jobweaver_worker" || mighty != "" {
		h.t.Errorf("connected are %s; %q may more than their rights", connected, mighty)
	}
}

// pulls checks that the gateway reaches the worker's pull, which hands out an attempt.
func (h *installation) pulls() {
	h.t.Helper()
	var accepted struct{ JobID string }
	status, answer := h.ask(http.MethodPost, "/api/jobs",
		`{"jobType":"SIMULATION","queue":"pull","payload":{"steps":[{"type":"LOG","message":"hi"}]}}`)
	if err := json.Unmarshal(answer, &accepted); err != nil || status != http.StatusAccepted {
		h.t.Fatalf("a job for pull workers: %d %s", status, answer)
	}
	var claimed struct{ Attempts []struct{ JobID string } }
	status, answer = h.ask(http.MethodPost, "/api/workers/claim",
		`{"worker":"host-1","types":["SIMULATION"],"queues":["pull"],"slots":1,"wait":"30s"}`)
	if err := json.Unmarshal(answer, &claimed); err != nil || len(claimed.Attempts) != 1 || claimed.Attempts[0].JobID != accepted.JobID {
		h.t.Errorf("a pull worker that claims %s: %d %s", accepted.JobID, status, answer)
	}
}

// secondStart repeats what each `docker compose up` does to the secrets, which must leave them as they are.
func (h *installation) secondStart() {
	h.t.Helper()
	secrets := h.project.Services["secrets"]
	before := h.secretsMade()
	again, _ := h.how.command(secrets, nil, h.arguments(secrets, secrets.Command))
	if out, err := again.CombinedOutput(); err != nil {
		h.t.Fatalf("the second start: %v: %s", err, out)
	}
	if after := h.secretsMade(); len(before) < 9 || !maps.Equal(before, after) {
		h.t.Errorf("of %d secrets the second start has changed some, or there are others: %d", len(before), len(after))
	}
	if status, answer := h.ask(http.MethodGet, "/api/jobs?limit=1", ""); status != http.StatusOK {
		h.t.Errorf("after the second start: %d %s", status, answer)
	}
}

// secretsMade are the contents of all files that the service secrets has made.
func (h *installation) secretsMade() map[string]string {
	h.t.Helper()
	made := map[string]string{}
	for _, volume := range h.project.Services["secrets"].Volumes {
		folder := h.how.found(h.t, volume)
		files, err := os.ReadDir(folder)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, file := range files {
			made[volume.Target+"/"+file.Name()] = h.secret("secrets", volume.Target+"/"+file.Name())
		}
	}
	return made
}

// readme runs the commands of the README's section. Of Docker's commands it runs `docker compose run --rm -T secrets …`
// as Compose would, and leaves out those that start the services.
func (h *installation) readme() string {
	h.t.Helper()
	_, section, _ := strings.Cut(read(h.t, "README.md"), "\n## Run it with Docker Compose\n")
	_, commands, _ := strings.Cut(section, "```sh\n")
	commands, _, found := strings.Cut(commands, "```")
	if !found || strings.Count(commands, "http://localhost:8080") < 2 {
		h.t.Fatalf("the README's section has another form than this test reads: %s", section)
	}
	script := strings.ReplaceAll(commands, "http://localhost:8080", h.gateway)
	secrets := h.project.Services["secrets"]
	show, _ := h.how.command(secrets, nil, h.arguments(secrets, nil))
	docker := `docker() { case "$*" in "compose run --rm -T secrets "*) shift 5; "$COMMAND" "${ARGS[@]}" "$@";; esac; }`
	script = fmt.Sprintf("COMMAND=%s\nARGS=(%s)\n%s\n%s", show.Path, strings.Join(show.Args[1:], " "), docker, script)
	cmd := exec.CommandContext(h.t.Context(), "bash", "-euc", script)
	var out, errors bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, &out, &errors
	if err := cmd.Run(); err != nil {
		h.t.Fatalf("the README's commands: %v: %s", err, &errors)
	}
	return out.String()
}

// ended waits for a job and returns its output.
func (h *installation) ended(id string) string {
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

func (h *installation) ask(method, path, body string) (status int, answer []byte) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.gateway+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.key)
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
