package cron_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/cron"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

func newKeys(t *testing.T) (*sealing.Keyset, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keyset.json")
	keys, err := sealing.CreateKeyset(path)
	if err != nil {
		t.Fatal(err)
	}
	return keys, path
}

func newSealer(t *testing.T, path string) *sealing.Sealer {
	t.Helper()
	sealer, err := sealing.New(sealing.Config{File: path})
	if err != nil {
		t.Fatal(err)
	}
	return sealer
}

// sealedBy is a function with keys.
func (h *fixture) sealedBy(path string) funchost.Function {
	h.t.Helper()
	f, err := cron.New(cron.Config{
		Queues: []string{"default"}, Sealing: sealing.Config{File: path},
	}, h.another(pgtest.As(h.url, cron.Name)).Store)
	if err != nil {
		h.t.Fatal(err)
	}
	return f.Host()
}

const secretJob = `{"jobType":"OWN","payload":"canary"}`

// keep stores a due schedule that a gateway has sealed.
func (h *fixture) keep(name, job string) {
	h.t.Helper()
	asked, err := apibody.DecodeSchedule(fmt.Appendf(nil, `{"name": %q, "cron": "0 0 1 1 *", "job": %s}`, name, secretJob))
	if err != nil {
		h.t.Fatal(err)
	}
	asked.JobJSON = []byte(job)
	if _, err := h.store.Schedules.Create(h.t.Context(), nil, apidb.Everyone, asked); err != nil {
		h.t.Fatal(err)
	}
	h.exec(`update schedules set next_at = date_trunc('second', now()) where name = '` + name + `'`)
	h.exec(`update schedules set cron = to_char(next_at at time zone 'UTC', 'FMSS FMMI FMHH24 FMDD FMMM "*"')`)
}

func TestASealedScheduleThatDoesNotOpenWaitsAndStopsNoOther(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, own := newKeys(t)
	_, foreign := newKeys(t)
	sealer, other := newSealer(t, own), newSealer(t, foreign)
	sealed := func(by *sealing.Sealer, name string) string {
		return string(by.Seal(sealing.OfSchedule(name, ""), []byte(secretJob)))
	}
	altered := []byte(sealed(sealer, "altered"))
	copy(altered[len(altered)-12:], "AAAAAAAA")
	h.keep("gone", sealed(other, "gone"))
	h.keep("altered", string(altered))
	h.keep("moved", sealed(sealer, "good"))
	h.keep("good", sealed(sealer, "good"))
	if _, _, err := h.sealedBy(own).Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"gone": 0, "altered": 0, "moved": 0, "good": 1} {
		if ticks := h.ticks(name); len(ticks) != want {
			t.Fatalf("%s: %+v", name, ticks)
		}
	}
	id := *h.ticks("good")[0].JobID
	h.opens(sealer, id)
	if _, _, err := h.function().Tick(t.Context()); err != nil || len(h.ticks("gone")) != 0 { // it has no key at all
		t.Fatal(h.ticks("gone"), err)
	}
	// A function with the key fires the waiting ticks.
	if _, _, err := h.sealedBy(foreign).Tick(t.Context()); err != nil || len(h.ticks("gone")) != 1 {
		t.Fatal(h.ticks("gone"), err)
	}
	h.opens(other, *h.ticks("gone")[0].JobID)
}

// opens checks that a job's payload is sealed for the job's own place.
func (h *fixture) opens(sealer *sealing.Sealer, id uuid.UUID) {
	h.t.Helper()
	job, err := h.store.Jobs.Job(h.t.Context(), apidb.Everyone, id)
	if err != nil {
		h.t.Fatal(err)
	}
	plain, err := sealer.Open(sealing.OfJob(id, sealing.Payload), job.Payload)
	if err != nil || string(plain) != `"canary"` || strings.Contains(string(job.Payload), "canary") {
		h.t.Errorf("its payload is %s: %s, %v", job.Payload, plain, err)
	}
}

func TestAFormerKeyIsNotNeededAfterATick(t *testing.T) {
	t.Parallel()
	h := open(t)
	keys, path := newKeys(t)
	old := newSealer(t, path)
	h.keep("a", string(old.Seal(sealing.OfSchedule("a", ""), []byte(secretJob))))
	h.keep("plain", secretJob)
	h.exec("update schedules set next_at = null")
	first, err := keys.Keys()
	if err != nil {
		t.Fatal(err)
	}
	second, err := keys.Add()
	if err := errors.Join(err, keys.Promote(second)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.sealedBy(path).Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	alone := filepath.Join(t.TempDir(), "alone")
	if err != nil || os.WriteFile(alone, text, 0o600) != nil {
		t.Fatal(err)
	}
	if keys, err = sealing.OpenKeyset(alone); err != nil || keys.Remove(first[0].ID) != nil {
		t.Fatal(err)
	}
	sealer := newSealer(t, alone)
	for _, name := range []string{"a", "plain"} {
		row, err := h.store.Schedules.Get(t.Context(), apidb.Everyone, apidb.Key{Name: name})
		if err != nil || strings.Contains(string(row.Job), "canary") {
			t.Fatalf("%s is %s, %v", name, row.Job, err)
		}
		if err := row.Open(sealer); err != nil || string(row.Job) != secretJob {
			t.Errorf("%s: %s, %v", name, row.Job, err)
		}
	}
}
