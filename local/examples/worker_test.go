package examples

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// The example's worker serves its own queue, beside the workers of the installation, which do not know PRIMES. Payloads
// and outputs are sealed: a worker that did not load the keyset could open no payload.
func TestCustomWorkerRunsItsJobType(t *testing.T) {
	t.Parallel()
	postgres, err := localpostgres.Start(t.Context(), localpostgres.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = postgres.Stop() })
	kafka, err := localkafka.StartEmbedded(localkafka.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kafka.Stop() })
	keys := filepath.Join(t.TempDir(), "keys.json")
	if _, err := sealing.CreateKeyset(keys); err != nil {
		t.Fatal(err)
	}
	o := dev.Options{
		Dir: t.TempDir(), DatabaseURL: postgres.URL(), Brokers: kafka.Brokers(), Kafka: "embedded",
		Queues: []string{"default", "numbers"}, WorkerQueues: []string{"default"}, JobTypes: []string{"PRIMES"},
		Keyset: keys, Out: t.Output(), Metrics: prometheus.NewRegistry(),
	}
	database, err := migrations.WithDatabase(postgres.URL(), "jobweaver_worker")
	if err != nil {
		t.Fatal(err)
	}
	err = dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		worker := start(t, ".", []string{binary(t, "worker-go")}, "DATABASE_URL="+database,
			"KAFKA_BROKERS="+kafka.Brokers()[0], "QUEUES=numbers", "ENCRYPTION_KEYSET_FILE="+keys, "PRIMES_MOST=1000000", "LOG_FORMAT=text")
		api := client.New(url, "")
		if got, err := ended(ctx, api, primes(1_000_000)); err != nil {
			return err
		} else if got.Status != "COMPLETED" || compact(got.Output) != `{"primes":78498}` || got.Attempt != 1 {
			t.Errorf("it ended as %s", got.Raw)
		}
		if got, err := ended(ctx, api, primes(1_000_001)); err != nil {
			return err
		} else if got.Status != "FAILED" || got.LastError.ErrorCode != "PRIMES.TOO_LARGE" || got.Attempt != 1 {
			t.Errorf("what is too large ended as %s", got.Raw)
		}
		if code := worker.stop(t); code != 0 {
			t.Errorf("the worker's exit code is %d", code)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func primes(below int) string {
	return fmt.Sprintf(`{"jobType": "PRIMES", "queue": "numbers", "payload": {"below": %d}}`, below)
}

// ended submits a job, and returns it when it has ended.
func ended(ctx context.Context, api *client.Client, job string) (*client.Job, error) {
	accepted, err := api.SubmitJSON(ctx, []byte(job))
	if err != nil {
		return nil, err
	}
	return client.Follow(ctx, api, accepted.JobID, func(*client.Job) {})
}

// compact removes the spaces from JSON.
func compact(raw json.RawMessage) string { return strings.ReplaceAll(string(raw), " ", "") }
