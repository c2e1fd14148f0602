//go:build !nodev

package main

import (
	"context"
	"errors"
	"io"
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
				case $payload in *bad*) echo code RESIZE.NO_IMAGE >&3; exit 65;; *later*) test "${JOBWEAVER_CHECKPOINT-}" = '["seen"]' || { echo 'checkpoint ["seen"]' >&3; echo snooze 1ms >&3; };; esac
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
		stop()
		return <-stopped
	})
	if err != nil {
		t.Fatal(err)
	}
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
