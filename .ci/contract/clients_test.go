// Package contract uses the clients that generators make from the contract. `make test-contract` makes them first.
package contract

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"testing"

	"github.com/jobweaver/jobweaver/ci/contract/api"
	"github.com/jobweaver/jobweaver/local/dev"
)

func TestGeneratedClientsSubmitAndReadJobs(t *testing.T) {
	o := dev.Options{Dir: t.TempDir(), Kafka: "embedded", Queues: []string{"default"}, Out: io.Discard}
	err := dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		t.Run("oapi-codegen", func(t *testing.T) {
			if err := submitAndRead(ctx, url); err != nil {
				t.Error(err)
			}
		})
		t.Run("openapi-python-client", func(t *testing.T) {
			if out, err := exec.CommandContext(ctx, "python/.venv/bin/python", "python/submit_and_read.py", url).CombinedOutput(); err != nil {
				t.Errorf("%s: %s", err, out)
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func submitAndRead(ctx context.Context, url string) error {
	client, err := api.NewClientWithResponses(url)
	if err != nil {
		return err
	}
	payload := map[string]any{"steps": []any{map[string]any{"type": "LOG", "message": "generated"}}}
	priority, wait := 7, api.Wait("30s")
	accepted, err := client.SubmitJobWithResponse(ctx, nil, api.SubmitJobJSONRequestBody{
		JobType: "SIMULATION", Payload: payload, Priority: &priority, Tags: &[]api.Tag{"contract"},
	})
	if err != nil || accepted.JSON202 == nil {
		return fmt.Errorf("submit: %w, %s", err, accepted.Body)
	}
	answer, err := client.GetJobWithResponse(ctx, accepted.JSON202.JobId.String(), &api.GetJobParams{Wait: &wait})
	if err != nil || answer.JSON200 == nil {
		return fmt.Errorf("get: %w, %s", err, answer.Body)
	}
	if job := answer.JSON200; job.Status != api.StatusCOMPLETED || job.Priority != 7 || len(job.History) < 2 ||
		job.FinishedAt == nil || job.LastError != nil {
		return fmt.Errorf("the job is %+v", job)
	}
	waited, err := client.SubmitJobWithResponse(ctx, &api.SubmitJobParams{Wait: &wait}, api.SubmitJobJSONRequestBody{
		JobType: "SIMULATION", Payload: payload,
	})
	if err != nil || waited.JSON200 == nil {
		return fmt.Errorf("submit and wait: %w, %s", err, waited.Body)
	}
	if job, err := waited.JSON200.AsJob(); err != nil || job.Status != api.StatusCOMPLETED {
		return fmt.Errorf("submit and wait: %w, %s", err, waited.Body)
	}
	tag := api.Tag("contract")
	page, err := client.ListJobsWithResponse(ctx, &api.ListJobsParams{Tag: &tag})
	if err != nil || page.JSON200 == nil || len(page.JSON200.Jobs) != 1 || page.JSON200.Jobs[0].JobId != accepted.JSON202.JobId {
		return fmt.Errorf("list: %w, %s", err, page.Body)
	}
	wrong, err := client.SubmitJobWithResponse(ctx, nil, api.SubmitJobJSONRequestBody{JobType: "NOBODY"})
	if err != nil || wrong.StatusCode() != http.StatusBadRequest || wrong.JSON400 == nil || wrong.JSON400.ErrorCode == "" {
		return fmt.Errorf("a wrong type: %w, %s", err, wrong.Body)
	}
	return nil
}
