package clients

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// shops runs the worker of a shop in each language, kills it in the middle of a sale, and lets another one go on.
func shops(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	folder := t.TempDir()
	binary := filepath.Join(folder, "shop")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./clients/go/shop")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Run("shops", func(t *testing.T) {
		for language, command := range map[string][]string{
			"go": {binary}, "ts": {"node", "clients/typescript/build/examples/shop.js"},
			"py": {"clients/python/.venv/bin/python", "clients/python/examples/shop.py"},
		} {
			t.Run(language, func(t *testing.T) {
				t.Parallel()
				s := shop{t: t, url: url, language: language, ledger: filepath.Join(folder, language), command: command}
				s.run(ctx, client.New(url, ""))
			})
		}
	})
}

type shop struct {
	t                     *testing.T
	url, language, ledger string
	command               []string
}

// start starts the worker. It returns a function that kills it.
func (s *shop) start(ctx context.Context) (kill func()) {
	s.t.Helper()
	cmd := exec.CommandContext(ctx, s.command[0], s.command[1:]...) //nolint:gosec // our own examples
	cmd.Dir, cmd.Env = root, append(os.Environ(), "JOBWEAVER_URL="+s.url, "LEDGER="+s.ledger)
	cmd.Stdout, cmd.Stderr = s.t.Output(), s.t.Output()
	if !strings.HasPrefix(s.command[0], "/") && strings.Contains(s.command[0], "/") {
		cmd.Path, _ = filepath.Abs(filepath.Join(root, s.command[0]))
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func (s *shop) lines() string {
	text, _ := os.ReadFile(s.ledger)
	return string(text)
}

func (s *shop) run(ctx context.Context, c *client.Client) {
	t := s.t
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	kill := s.start(ctx)
	order := "order-" + s.language
	request := client.JobRequest{
		JobType: "shop." + s.language + ".sell", Queue: "pull", Payload: map[string]any{
			"order": order, "to": "ada@example.org", "items": []string{"a book", "a pen"},
		},
	}
	accepted, err := c.Submit(ctx, request)
	for every := time.NewTicker(100 * time.Millisecond); err != nil && ctx.Err() == nil; <-every.C { // until the worker has described its tasks
		accepted, err = c.Submit(ctx, request)
	}
	if err != nil {
		t.Fatal(err)
	}
	for every := time.NewTicker(20 * time.Millisecond); !strings.Contains(s.lines(), "prints "+order); <-every.C {
		if ctx.Err() != nil {
			t.Fatal("nothing is printed")
		}
	}
	kill()
	defer s.start(ctx)()
	data, err := json.Marshal(map[string]any{"order": order, "cents": 900})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.SendEvent(ctx, client.CloudEvent{ID: order, Source: "/bank", Type: "com.shop.paid", Data: data}); err != nil {
		t.Fatal(err)
	}
	job, err := c.Wait(ctx, accepted.JobID)
	if err != nil {
		t.Fatal(err)
	}
	var sale struct {
		Boxes  []string
		Mailed string
	}
	if err := job.DecodeOutput(&sale); err != nil || strings.Join(sale.Boxes, ", ") != "a box with a book, a box with a pen" || sale.Mailed != "mailed ada@example.org" {
		t.Errorf("%+v, %v", sale, err)
	}
	if lines := s.lines(); lines != "reserved "+order+"\nprints "+order+"\nprints "+order+"\nmailed ada@example.org\n" {
		t.Errorf("the ledger has\n%s", lines)
	}
}
