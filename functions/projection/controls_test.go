package projection_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func (h *fixture) pause(name string, paused bool) controlstore.Control {
	h.t.Helper()
	control, err := h.store.Controls.ChangeControl(h.t.Context(), nil, apidb.Everyone, jobevent.ControlOwner, name, "me", nil,
		func(c *jobevent.Control) { c.Paused = paused })
	if err != nil {
		h.t.Fatal(err)
	}
	return control
}

func (h *fixture) handleApplied(name string, version int64) {
	h.t.Helper()
	h.handle(event(h.t, jobevent.TypeApplied, "command", jobevent.ControlID(jobevent.ControlOwner, name, version), uuid.Nil,
		jobevent.ControlApplied{Kind: jobevent.ControlOwner, Name: name, Version: version}))
}

func TestAControlIsRepublishedUntilTheSchedulerAppliesIt(t *testing.T) {
	t.Parallel()
	h := open(t)
	first, second := h.pause("acme", true), h.pause("other", true)
	if got := h.pass(); len(got) != 0 {
		t.Fatalf("young ones are republished: %v", got)
	}
	h.grow(11 * time.Second)
	got := h.next()
	if want, err := apievent.Control(first); err != nil || len(got) != 2 || got[0].ID() != want.ID() || got[0].Type() != jobevent.TypeControl ||
		string(got[0].Data()) != string(want.Data()) {
		t.Fatalf("got %v, want %v, %v", got, want, err)
	}
	h.handleApplied("acme", first.Version)
	h.handleApplied("other", second.Version-1)
	h.grow(11 * time.Second)
	if got = h.next(); len(got) != 1 || got[0].ID() != jobevent.ControlID(jobevent.ControlOwner, "other", second.Version) {
		t.Errorf("got %v", got)
	}
}

func TestAnAppliedVersionOnlyRises(t *testing.T) {
	t.Parallel()
	h := open(t)
	before := h.pause("acme", true)
	after := h.pause("acme", false)
	h.handleApplied("acme", before.Version) // the row has changed since, so it stays
	if got, err := h.store.Controls.Control(t.Context(), apidb.Everyone, jobevent.ControlOwner, "acme"); err != nil || got.AppliedVersion != before.Version ||
		got.Applied() {
		t.Fatalf("got %+v, %v", got, err)
	}
	later := h.pause("acme", true)
	h.handleApplied("acme", later.Version)
	h.handleApplied("acme", after.Version)
	if got, err := h.store.Controls.Control(t.Context(), apidb.Everyone, jobevent.ControlOwner, "acme"); err != nil || got.AppliedVersion != later.Version {
		t.Fatalf("got %+v, %v", got, err)
	}
	last := h.pause("acme", false)
	h.handleApplied("acme", last.Version)
	if got, err := h.store.Controls.Control(t.Context(), apidb.Everyone, jobevent.ControlOwner, "acme"); err != nil || got.Version != 0 {
		t.Fatalf("it has no effect, and is kept: %+v, %v", got, err)
	}
}
