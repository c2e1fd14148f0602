package dev_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
)

type rejectedRecord struct {
	ID, Function, Topic string
	Offset              int64
	Value               struct{ Encoding, Data string }
}

// rejected waits until n records of a topic are listed.
func rejected(ctx context.Context, c *client.Client, topic string, n int) ([]rejectedRecord, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; {
		var page struct{ Rejected []rejectedRecord }
		_, err := c.Do(ctx, http.MethodGet, "/api/rejected?topic="+topic, "", nil, &page)
		if err != nil || len(page.Rejected) >= n {
			return page.Rejected, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%d rejected records of %s are listed, want %d", len(page.Rejected), topic, n)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// An unreadable record on a topic is listed with all its parts; when it is redriven it is rejected again, and jobs
// run meanwhile.
func TestGarbageOnATopicIsListedRedrivenAndRejectedAgain(t *testing.T) {
	t.Parallel()
	o := options(t, newFolder(t))
	o.Brokers = kafkatest.Brokers(t)
	stranger, closing, err := funchost.NewRedrive(funchost.Config{Kafka: kafkaevent.Config{Brokers: o.Brokers}}, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	defer closing()
	err = dev.Run(t.Context(), o, func(ctx context.Context, at string) error {
		c := client.New(at, "")
		garbage := jobevent.Rejected{Topic: jobevent.TopicCreated, Key: []byte("k"), Value: []byte("\xff garbage")}
		if err := stranger(ctx, garbage); err != nil {
			return err
		}
		found, err := rejected(ctx, c, jobevent.TopicCreated, 1)
		if err != nil {
			return err
		}
		var whole rejectedRecord
		if _, err := c.Do(ctx, http.MethodGet, "/api/rejected/"+found[0].ID, "", nil, &whole); err != nil {
			return err
		}
		if len(found) != 1 || whole.Function != "ingest" || whole.Value.Encoding != "base64" || whole.Value.Data != "/yBnYXJiYWdl" {
			t.Errorf("listed are %+v, shown is %+v", found, whole)
		}
		if _, err := c.Do(ctx, http.MethodPost, "/api/rejected/"+whole.ID+"/redrive", "", nil, nil); err != nil {
			return err
		}
		again, err := rejected(ctx, c, jobevent.TopicCreated, 2)
		if err != nil {
			return err
		}
		if len(again) != 2 || again[1].ID != whole.ID || again[0].Offset != whole.Offset+1 {
			t.Errorf("listed are %+v", again)
		}
		for _, r := range again {
			if _, err := c.Do(ctx, http.MethodDelete, "/api/rejected/"+r.ID, "", nil, nil); err != nil {
				return err
			}
		}
		job, err := c.SubmitJSON(ctx, []byte(`{"jobType":"SIMULATION","payload":{"steps":[{"type":"LOG","message":"hi"}]}}`))
		if err != nil {
			return err
		}
		ended, err := c.Get(ctx, job.JobID, 30*time.Second)
		if err == nil && ended.Status != "COMPLETED" {
			t.Errorf("a job is %s", ended.Status)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
