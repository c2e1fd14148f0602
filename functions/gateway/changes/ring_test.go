package changes

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/waiters"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/client"
)

func TestARingKeepsTheLatestEvents(t *testing.T) {
	t.Parallel()
	r := ring{life: "a"}
	add := func(n, bytes int) {
		for range n {
			r.add(client.EventJob, make([]byte, bytes), &event{})
		}
	}
	add(3, 1)
	if events, missed := r.after(1); missed || len(events) != 2 || !strings.HasPrefix(string(events[0].frame), "id: a-2\nevent: job\ndata: ") {
		t.Errorf("after the first there are %d, missed %v", len(events), missed)
	}
	if events, missed := r.after(3); missed || len(events) != 0 {
		t.Errorf("after the last there are %d, missed %v", len(events), missed)
	}
	if _, missed := r.after(4); !missed {
		t.Error("a place that is yet to come is known")
	}
	add(ringEvents, 1)
	if _, missed := r.after(2); !missed {
		t.Error("what is not kept any more is not missed")
	}
	if events, missed := r.after(3); missed || len(events) != ringEvents {
		t.Errorf("there are %d, missed %v", len(events), missed)
	}
	last := r.last
	add(1, ringBytes)
	if events, missed := r.after(last); missed || len(events) != 1 {
		t.Errorf("of one that has no room beside others there are %d, missed %v", len(events), missed)
	}
	r.forget()
	if _, missed := r.after(last + 1); !missed || r.bytes != 0 {
		t.Errorf("what is forgotten is not missed; %d bytes", r.bytes)
	}
	if events, missed := r.after(r.last); missed || len(events) != 0 {
		t.Error("who comes now has missed something")
	}
}

func TestIDIsValidOnlyInItsOwnRing(t *testing.T) {
	t.Parallel()
	r := ring{life: "a"}
	if place, ok := r.place(r.id(7)); !ok || place != 7 {
		t.Errorf("read %d, %v", place, ok)
	}
	for _, id := range []string{"", "a", "a-", "b-7", "7", "a--7", "a-7x", "a-18446744073709551616"} {
		if place, ok := r.place(id); ok {
			t.Errorf("%q is place %d", id, place)
		}
	}
}

// A client that does not read never delays the hub. It gets a reload event instead of the missed ones.
func TestSlowStreamGetsAReload(t *testing.T) {
	t.Parallel()
	h := New(nil, nil, nil, nil)
	slow, quick := &Subscription{}, &Subscription{}
	for _, s := range []*Subscription{slow, quick} {
		defer h.Join(s, logstore.Place{})()
	}
	job := &jobstore.Changed{Job: jobstore.Job{JobID: uuid.New()}}
	add := func(n int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for range n {
			h.addJob(job, []byte("{}"), changes{status: true})
		}
	}
	add(ringEvents)
	if frames, _ := h.Next(quick); len(frames) != ringEvents {
		t.Errorf("%d events", len(frames))
	}
	add(1)
	frames, _ := h.Next(slow)
	if len(frames) != 1 || !strings.Contains(string(frames[0]), "event: reload") || !strings.HasPrefix(string(frames[0]), "id: "+h.ring.id(h.ring.last)) {
		t.Errorf("got %d events, first %s", len(frames), frames[0])
	}
	for _, s := range []*Subscription{slow, quick} {
		add(1)
		if frames, _ := h.Next(s); len(frames) == 0 || !strings.Contains(string(frames[len(frames)-1]), "event: job") {
			t.Errorf("it does not go on: %s", frames)
		}
	}
}

func TestReconnectedStreamResumes(t *testing.T) {
	t.Parallel()
	h := New(nil, nil, nil, nil)
	id := uuid.New()
	first := &Subscription{JobID: id}
	leave := h.Join(first, logstore.Place{})
	came := h.ring.id(first.place)
	h.mu.Lock()
	h.addJob(&jobstore.Changed{Job: jobstore.Job{JobID: id}}, []byte("{}"), changes{status: true})
	h.mu.Unlock()
	leave()
	for name, c := range map[string]struct {
		stream Subscription
		wants  string
	}{
		"the job":     {Subscription{JobID: id, LastEventID: came}, "event: job"},
		"a list":      {Subscription{LastEventID: came}, "event: job"},
		"another job": {Subscription{JobID: uuid.New(), LastEventID: came}, "event: reload"}, // the ring has no events of this job
		"another hub": {Subscription{LastEventID: "0-1"}, "event: reload"},
		"a new one":   {Subscription{}, ""},
	} {
		s := c.stream
		leave := h.Join(&s, logstore.Place{})
		frames, _ := h.Next(&s)
		if c.wants == "" && len(frames) > 0 || c.wants != "" && (len(frames) != 1 || !strings.Contains(string(frames[0]), c.wants)) {
			t.Errorf("%s: %s", name, frames)
		}
		leave()
	}
}

// A due reload event does not hold back other events. Other events are held back only if there are more changes than
// can be read.
func TestDueReloadDoesNotDelayEvents(t *testing.T) {
	t.Parallel()
	h := New(nil, nil, nil, nil)
	defer h.Join(&Subscription{}, logstore.Place{})()
	h.Ends = waiters.New(nil, waiters.Never)
	h.setListening(true)
	h.miss(false)
	ids := make([]uuid.UUID, mostBehind+1)
	for i := range ids {
		ids[i] = uuid.New()
	}
	h.mark(ids[:1], changes{status: true})
	if taken := h.take(); len(taken) != 1 || !h.reload {
		t.Errorf("%d jobs are read, a reload is due: %v", len(taken), h.reload)
	}
	h.mark(ids, changes{status: true})
	if taken := h.take(); len(taken) != 0 || !h.reload {
		t.Errorf("of too many %d are read, a reload is due: %v", len(taken), h.reload)
	}
}
