package cron_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// The function has the rights of its role, and the keys.
func TestAnAlertThatFiresIsPublishedAsAJobOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, keys := newKeys(t)
	sealer := newSealer(t, keys)
	asked := apibody.Alert{
		Name: "a", OwnerID: "acme", JobType: "CHARGE", Failures: 3, WindowMinutes: 5, QuietMinutes: 60,
		To: jobspec.Destination{Slack: "https://hooks.example.org/canary"},
	}
	if _, err := h.store.Alerts.Create(t.Context(), nil, asked, sealer); err != nil {
		t.Fatal(err)
	}
	h.exec(`insert into tallies (everyone, owner_id, grain, at, queue, job_type, what, n, kept)
		values (false, 'acme', 'minute', date_trunc('minute', now()), 'default', 'CHARGE', 'FAILED', 3, 0)`)
	published := make(chan jobevent.Item, 10)
	ended, stop := context.WithCancel(t.Context())
	stop()
	for range 2 { // another process sends no second notice
		f := h.sealedBy(keys)
		if err := f.Run(ended, nil); err != nil { // from now on a tick returns its events
			t.Fatal(err)
		}
		events, next, err := f.Tick(t.Context())
		if err != nil || next <= 0 {
			t.Fatal(next, err)
		}
		for _, e := range events {
			published <- e
		}
	}
	close(published)
	if len(published) != 1 {
		t.Fatalf("%d events were published", len(published))
	}
	created, err := jobevent.Decode[jobevent.Created](<-published)
	if err != nil || created.JobType != jobspec.Alert || created.OwnerID != "acme" || created.Priority != jobspec.MaxPriority {
		t.Fatalf("%+v, %v", created, err)
	}
	plain, err := sealer.Open(sealing.OfJob(created.JobID, sealing.Payload), created.Payload)
	var p jobspec.AlertPayload
	if err != nil || json.Unmarshal(plain, &p) != nil || p.To.Slack != asked.To.Slack || p.Notice.Failed != 3 ||
		p.Notice.State != jobspec.NoticeFiring {
		t.Errorf("its payload is %s, %v", plain, err)
	}
}
