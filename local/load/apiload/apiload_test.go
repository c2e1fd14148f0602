package apiload_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/local/load/apiload"
)

const noop = `{"jobType":"NOOP","payload":{}}`

func TestLoadOnAnInstallationIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	o := dev.Options{
		Dir: t.TempDir(), Kafka: "embedded", Queues: []string{"default"}, Out: t.Output(), Metrics: prometheus.NewRegistry(),
		Handlers: map[string]handlers.Handler{
			"NOOP": func(context.Context, *handlers.Attempt) (handlers.Result, error) { return handlers.Result{}, nil },
		},
	}
	err := dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		api := apiload.New(url)
		defer api.Close()
		took, err := api.Throughput(ctx, noop, 25, 2, 10)
		if err != nil || took.Completed < took.Accepted || took.Accepted == 0 {
			t.Errorf("25 jobs took %+v, %v", took, err)
		}
		l, err := api.Latency(ctx, apiload.Steady{Request: noop, Rate: 250, For: time.Second, Follow: 50})
		if err != nil || len(l.Post) != 250 || len(l.Start) != 250 || len(l.Completed) != 50 || l.Refused != 0 {
			t.Errorf("%d posts, %d starts, %d followed, %d refused, %v",
				len(l.Post), len(l.Start), len(l.Completed), l.Refused, err)
		}
		if last, err := api.Fill(ctx, noop, 5, 1, 5); err != nil || len(last) != 1 {
			t.Errorf("last jobs %v, %v", last, err)
		}
		if _, err := api.SubmitBatch(ctx, apiload.Batch(`{"jobType":"UNKNOWN","payload":{}}`, 2), 2); err == nil {
			t.Error("refused jobs count as accepted")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestABatchIsJSON(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		var batch struct{ Jobs []json.RawMessage }
		if err := json.Unmarshal(apiload.Batch(noop, n), &batch); err != nil || len(batch.Jobs) != n {
			t.Errorf("%d jobs of %d, %v", len(batch.Jobs), n, err)
		}
	}
	var keyed struct {
		Jobs []struct{ JobType, FairnessKey string }
	}
	if err := json.Unmarshal(apiload.KeyedBatch(noop, 3, 9, 10), &keyed); err != nil || len(keyed.Jobs) != 3 ||
		keyed.Jobs[0].FairnessKey != "key-9" || keyed.Jobs[1].FairnessKey != "key-0" || keyed.Jobs[2].JobType == "" {
		t.Errorf("%+v, %v", keyed, err)
	}
}
