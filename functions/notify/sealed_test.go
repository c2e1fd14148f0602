package notify

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/deliverystore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

func newSealer(t *testing.T) *sealing.Sealer {
	t.Helper()
	cfg := sealing.Config{File: filepath.Join(t.TempDir(), "keyset.json")}
	_, err := sealing.CreateKeyset(cfg.File)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := sealing.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return sealer
}

// endsSealed makes a job end with a sealed output.
func (h *fixture) endsSealed(url string, output func(sealing.Place) json.RawMessage) uuid.UUID {
	h.t.Helper()
	id, now := h.job(url), time.Now().UTC()
	s := jobevent.Status{
		JobID: id, Version: 2, Status: string(jobstate.Completed), Attempt: 1, UpdatedAt: now, FinishedAt: &now,
		Output: output(sealing.OfAttempt(id, 1, sealing.Output)),
	}
	b, err := json.Marshal(s)
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := h.store.Statuses.ApplyStatuses(h.t.Context(), []statusstore.PublishedStatus{{Status: s, JSON: b}}); err != nil {
		h.t.Fatal(err)
	}
	return id
}

// A delivery that this process cannot open is neither sent in part nor given up: a process with the key delivers it.
func TestADeliveryThatDoesNotOpenWaits(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := receive(t, nil)
	sealer, other := newSealer(t), newSealer(t)
	plain := json.RawMessage(`"canary"`)
	gone := h.endsSealed(r.URL, func(at sealing.Place) json.RawMessage { return other.Seal(at, plain) })
	bad := []uuid.UUID{
		gone,
		h.endsSealed(r.URL, func(at sealing.Place) json.RawMessage {
			text := sealer.Seal(at, plain)
			copy(text[len(text)-12:], "AAAAAAAA")
			return text
		}),
		h.endsSealed(r.URL, func(sealing.Place) json.RawMessage {
			return sealer.Seal(sealing.OfAttempt(gone, 1, sealing.Output), plain)
		}),
	}
	f := h.function()
	f.sealer, f.delays = sealer, []time.Duration{time.Hour}
	stop := h.run(f)
	for _, id := range bad {
		d := h.until(id, "was tried", func(d deliverystore.Delivery) bool { return d.Tries == 1 && d.LastError != "" })
		if d.Status != deliverystore.Pending || d.LastAnswer != nil || d.LastError != errSealed.Error() || time.Until(*d.NextAt) < time.Minute {
			t.Errorf("%+v", d)
		}
	}
	// Its host does not count as slow because of it.
	good := h.endsSealed(r.URL, func(at sealing.Place) json.RawMessage { return sealer.Seal(at, plain) })
	h.untilStatus(good, deliverystore.Delivered)
	if got := r.next(); got.id() != jobevent.StatusID(good, 2) || !bytes.Contains(got.body, []byte(`"output":"canary"`)) {
		t.Errorf("got %s", got.body)
	}
	stop()
	h.exec("update deliveries set next_at = now() where job_id = $1", gone)
	f = h.function()
	f.sealer = other
	h.run(f)
	h.untilStatus(gone, deliverystore.Delivered)
	if got := r.next(); got.id() != jobevent.StatusID(gone, 2) || !bytes.Contains(got.body, []byte(`"output":"canary"`)) {
		t.Errorf("got %s", got.body)
	}
	r.nothingMore()
}
