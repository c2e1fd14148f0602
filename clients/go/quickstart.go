// Quickstart submits jobs and follows them: go run ./clients/go
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

type logStep struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func run(ctx context.Context) error {
	jobs := client.New(os.Getenv("JOBWEAVER_URL"), os.Getenv("JOBWEAVER_API_KEY"))
	hello := client.JobRequest{
		JobType: "SIMULATION", Payload: map[string]any{"steps": []logStep{{"LOG", "hi"}}}, Tags: []string{"quickstart"},
	}

	// Run it in an hour.
	soon := hello
	soon.Delay = time.Hour
	later, err := jobs.Submit(ctx, soon)
	if err != nil {
		return err
	}

	// Submit and wait. A second submit with the same key would return this job.
	hello.IdempotencyKey = fmt.Sprint("hello-", time.Now().UnixNano())
	job, err := jobs.Run(ctx, hello)
	if err != nil {
		return err
	}
	fmt.Println(job.Status)

	// Many at once: each has its own result.
	hello.IdempotencyKey = ""
	results, err := jobs.SubmitBatch(ctx, []client.JobRequest{hello, {JobType: "NO-SUCH-TYPE"}})
	if err != nil {
		return err
	}
	fmt.Println(results[0].Status, results[1].Error.ErrorCode)

	// Follow a job as it changes.
	for event, err := range jobs.StreamJob(ctx, results[0].JobID) {
		if err != nil {
			return err
		}
		if event.Name == client.EventJob && event.Job.Terminal() {
			break
		}
	}

	// A waiting job can be changed and cancelled; an ended one cannot.
	if err := jobs.Cancel(ctx, later.JobID); err != nil {
		return err
	}
	ended, err := jobs.Wait(ctx, later.JobID)
	if err != nil {
		return err
	}
	err = jobs.Cancel(ctx, ended.JobID)
	fmt.Println(ended.Status, errors.Is(err, client.ErrConflict))
	return nil
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the context is over, too
	}
}
