//go:build !nodev

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

func TestWorkRunsProgramsOnAnInstallation(t *testing.T) {
	t.Parallel()
	o := dev.Options{
		Dir: t.TempDir(), Kafka: "embedded", Queues: []string{"default", "pull"}, JobTypes: []string{"RESIZE"}, Out: t.Output(),
	}
	err := dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		working, stop := context.WithCancel(ctx)
		defer stop()
		stopped := make(chan error, 1)
		go func() {
			root := newRoot()
			root.SetErr(io.Discard)
			root.SetArgs([]string{
				"work", "--url", url, "--type", "RESIZE", "--slots", "3", "--", "sh", "-c",
				`payload=$(cat); echo "resizing $JOBWEAVER_TOKEN" >&2; echo progress 100 all >&3
				case $payload in *event*) echo "$JOBWEAVER_EVENT"; exit;; *bad*) echo code RESIZE.NO_IMAGE >&3; exit 65;; *later*) test "${JOBWEAVER_CHECKPOINT-}" = '["seen"]' || { echo 'checkpoint ["seen"]' >&3; echo snooze 1ms >&3; };; esac
				echo "$payload"`,
			})
			stopped <- cli.Execute(working, root)
		}()
		api := client.New(url, "")
		for image, status := range map[string]string{"good": client.Completed, "bad": client.Failed, "later": client.Completed} {
			job, err := api.Run(ctx, client.JobRequest{JobType: "RESIZE", Queue: "pull", Payload: map[string]any{"image": image}})
			if err != nil && !errors.As(err, new(*client.EndedError)) {
				return err
			}
			attempts := map[string]int{"later": 2}[image]
			if job.Status != status || job.Attempt != max(attempts, 1) || status == client.Failed && job.LastError.ErrorCode != "RESIZE.NO_IMAGE" ||
				status == client.Completed && job.OutputText() != `{"image":"`+image+`"}` {
				t.Errorf("%s ended as %s", image, job.Raw)
			}
		}
		if output := outputOfEvent(ctx, t, url, api); !strings.Contains(output, `"subject":"customer 9"`) {
			t.Errorf("the program had the event %s", output)
		}
		stop()
		return <-stopped
	})
	if err != nil {
		t.Fatal(err)
	}
}

// outputOfEvent submits a job by an event, and returns its output.
func outputOfEvent(ctx context.Context, t *testing.T, url string, api *client.Client) string {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/events?jobType=RESIZE&queue=pull", strings.NewReader(`{"image": "event"}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "/shop", "Ce-Type": "placed",
		"Ce-Subject": "customer%209",
	} {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var submitted struct{ JobID string }
	if err := json.NewDecoder(response.Body).Decode(&submitted); err != nil {
		t.Fatal(err)
	}
	job, err := api.Wait(ctx, submitted.JobID)
	if err != nil {
		t.Fatal(err)
	}
	return job.OutputText()
}

func TestWorkNeedsATypeAndAProgram(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"work", "--type", "T"}, {"work", "--", "sh"}, {"work", "--type", "T", "--", "./no-such-program"},
		{"work", "--type", "T", "--slots", "0", "--", "sh"}, {"work", "--type", "T", "--log-level", "x", "--", "sh"},
	} {
		root := newRoot()
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		root.SetArgs(args)
		if err := cli.Execute(t.Context(), root); cli.CodeOf(err) != cli.ExitUsage {
			t.Errorf("%v: %v", args, err)
		}
	}
}
