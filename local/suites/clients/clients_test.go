// Package clients runs the clients in three languages on an installation, and compares the docs with their examples.
package clients

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
)

var (
	wanted = flag.Bool("clients.run", false, "run the clients' suites on an installation")
	update = flag.Bool("clients.update", false, "write the examples into the docs")
)

const root = "../../.."

//go:generate go test -run TestThePagesShowTheExamples -clients.update .

func TestTheClientsWorkOnAnInstallation(t *testing.T) {
	t.Parallel()
	if !*wanted {
		t.Skip("make test-clients runs it")
	}
	o := dev.Options{
		Dir: t.TempDir(), Kafka: "embedded", Queues: []string{"default", "pull"}, Out: t.Output(),
		JobTypes: []string{"RESIZE", "TYPESCRIPT", "PYTHON"}, // of the pull workers in the suites
	}
	err := dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		t.Run("Go", func(t *testing.T) { goClient(ctx, t, client.New(url, "")) })
		installedFromPages(ctx, t, url)
		shops(ctx, t, url)
		t.Run("Go groups", func(t *testing.T) { goGroups(ctx, t, client.New(url, "")) })
		t.Run("Go parts", func(t *testing.T) { goParts(ctx, t, client.New(url, "")) })
		for name, command := range map[string][]string{
			"Go quickstart": {".", "go", "run", "./clients/go"},
			"Go first":      {".", "go", "run", "./clients/go/first"},
			"Go tasks":      {".", "go", "run", "./clients/go/task"},
			"TypeScript":    {"clients/typescript", "npm", "run", "--silent", "live"},
			"Python":        {"clients/python", ".venv/bin/pytest", "-q", "-p", "no:cacheprovider", "live"},
		} {
			t.Run(name, func(t *testing.T) {
				dir, err := filepath.Abs(filepath.Join(root, command[0]))
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(command[1], ".") {
					command[1] = filepath.Join(dir, command[1])
				}
				cmd := exec.CommandContext(ctx, command[1], command[2:]...) //nolint:gosec // our own suites
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "JOBWEAVER_URL="+url)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				} else {
					t.Logf("%s", bytes.TrimSpace(out))
				}
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func goClient(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	steps := map[string]any{"steps": []any{map[string]any{"type": "LOG", "message": "hi"}}}
	later, err := c.Submit(ctx, client.JobRequest{JobType: "SIMULATION", Payload: steps, Delay: time.Hour, Tags: []string{"go"}})
	if err != nil {
		t.Fatal(err)
	}
	// A command that overtakes its job waits for the next sweep.
	for job, err := c.Get(ctx, later.JobID, 0); err == nil && job.Version == 0; {
		job, err = c.Get(ctx, later.JobID, 0)
	}
	// A command that is not confirmed yet blocks the next one.
	unhindered := func(command func() error) {
		t.Helper()
		err := command()
		for errors.Is(err, client.ErrConflict) && ctx.Err() == nil {
			err = command()
		}
		if err != nil {
			t.Error(err)
		}
	}
	unhindered(func() error { return c.Change(ctx, later.JobID, map[string]any{"priority": 7}) })
	unhindered(func() error { return c.Reschedule(ctx, later.JobID, time.Now().Add(2*time.Hour)) })
	unhindered(func() error { return c.Cancel(ctx, later.JobID) })
	cancelled, err := c.Wait(ctx, later.JobID)
	if err != nil || cancelled.Status != client.Cancelled || cancelled.Priority != 7 {
		t.Errorf("%+v, %v", cancelled, err)
	}
	again, err := c.RunAgain(ctx, later.JobID, map[string]any{"delayMs": 0})
	if err != nil {
		t.Fatal(err)
	}
	var last *client.Job
	for event, err := range c.StreamJob(ctx, again.JobID) {
		if err != nil {
			t.Fatal(err)
		}
		if last = event.Job; last != nil && last.Terminal() {
			break
		}
	}
	if lines, _, err := c.Logs(ctx, again.JobID, 1, ""); err != nil || len(lines) == 0 || lines[0].Text != "hi" {
		t.Errorf("%s has the log %+v, %v", last.Status, lines, err)
	}
	unhindered(func() error { return c.Retry(ctx, later.JobID) }) // it runs at once, so a cancel would be a race
	if _, err := c.Wait(ctx, later.JobID); err != nil {
		t.Error(err)
	}
	unhindered(func() error { return c.Delete(ctx, later.JobID) })
	if _, err := c.Run(ctx, client.JobRequest{
		JobType: "SIMULATION", Payload: map[string]any{"steps": []any{map[string]any{"type": "FAIL", "message": "no"}}}, MaxRetryCount: new(0),
	}); !errors.As(err, new(*client.EndedError)) {
		t.Errorf("a job that fails: %v", err)
	}
}

func goGroups(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	queue, err := c.Queues.Create(ctx, "go-queue", client.QueueOfRunjob)
	must(err)
	if queue.Origin != client.QueueCreated || queue.State != client.QueueActive || queue.Workers != client.QueueOfRunjob {
		t.Errorf("created: %+v", queue)
	}
	steps := map[string]any{"steps": []any{map[string]any{"type": "LOG", "message": "hi"}}}
	job := client.JobRequest{JobType: "SIMULATION", Payload: steps, Queue: queue.Queue}
	batch, err := c.Batches.Create(ctx, client.BatchRequest{Jobs: []client.JobRequest{job}, Closed: true})
	must(err)
	flow, err := c.Flows.Create(ctx, client.FlowRequest{Jobs: map[string]client.JobRequest{"only": job}})
	must(err)
	must(c.Queues.Remove(ctx, queue.Queue, true))
	ended, err := c.Flows.Wait(ctx, flow.FlowID)
	must(err)
	if ended.Status != client.Completed {
		t.Errorf("the flow is %s", ended.Status)
	}
	seen := map[string]bool{}
	for is, err := range c.Batches.List(ctx, client.BatchFilter{}) {
		must(err)
		seen[is.BatchID] = true
	}
	for is, err := range c.Flows.List(ctx, client.BatchFilter{Status: client.Completed}) {
		must(err)
		seen[is.FlowID] = true
	}
	if !seen[batch] || !seen[flow.FlowID] {
		t.Errorf("listed: %v, without batch %s or flow %s", seen, batch, flow.FlowID)
	}
	queues, err := c.Queues.List(ctx)
	must(err)
	if len(queues) == 0 || queues[0].Queue != "default" || queues[0].Origin != client.QueueSetting {
		t.Errorf("queues: %+v", queues)
	}
	for err == nil { // a removal takes ten seconds at least
		queue, err = c.Queues.Get(ctx, queue.Queue)
	}
	if !errors.Is(err, client.ErrNotFound) {
		t.Errorf("a queue that is removed: %+v, %v", queue, err)
	}
}

// docs/tasks.md compares the lines of the smallest programs with those of other systems.
func TestThePageCountsTheLinesOfTheFirstPrograms(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "/docs/tasks.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`\(\.\./(clients/\S*first\S*)\) \| (\d+) \|`).FindAllStringSubmatch(string(page), -1)
	for _, row := range rows {
		program, err := os.ReadFile(filepath.Join(root, row[1]))
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for line := range strings.Lines(string(program)) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "#") {
				lines++
			}
		}
		if fmt.Sprint(lines) != row[2] {
			t.Errorf("%s has %d lines, not %s", row[1], lines, row[2])
		}
	}
	if len(rows) != 3 {
		t.Errorf("it counts %d programs", len(rows))
	}
}

// The pages show whole files, each below a comment with its name. The tests above run them.
func TestThePagesShowTheExamples(t *testing.T) {
	t.Parallel()
	for name, examples := range map[string]int{"clients.md": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			showsExamples(t, name, examples)
		})
	}
}

func showsExamples(t *testing.T, name string, examples int) {
	t.Helper()
	page, err := os.ReadFile(root + "/docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)(<!-- (clients/[^ ]+) -->\n```[a-z]+\n)(.*?)(```\n)")
	if *update {
		page = block.ReplaceAllFunc(page, func(shown []byte) []byte {
			part := block.FindSubmatch(shown)
			file, err := os.ReadFile(filepath.Join(root, string(part[2])))
			if err != nil {
				t.Fatal(err)
			}
			return slices.Concat(part[1], file, part[4])
		})
		if err := os.WriteFile(root+"/docs/"+name, page, 0o644); err != nil { //nolint:gosec // a page of the docs
			t.Fatal(err)
		}
	}
	shown := block.FindAllSubmatch(page, -1)
	for _, part := range shown {
		file, err := os.ReadFile(filepath.Join(root, string(part[2])))
		if err != nil || !bytes.Equal(file, part[3]) {
			t.Errorf("it does not show %s as it is: run go generate ./local/suites/clients: %v", part[2], err)
		}
	}
	if len(shown) != examples {
		t.Errorf("it shows %d examples, not %d", len(shown), examples)
	}
}
