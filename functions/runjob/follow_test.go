package runjob

import (
	"slices"
	"testing"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// orderQueues sends the order to workers to serve the created queues, as watchdog does.
func (h *fixture) orderQueues(queues []jobevent.CreatedQueue, workers ...*worker) {
	h.t.Helper()
	for _, w := range workers {
		e, err := jobevent.New(jobevent.TypeAttemptCancel, jobevent.Meta{
			Function: "watchdog", ID: jobevent.FollowID(w.id, 1), Key: w.id,
		}, jobevent.AttemptCancel{WorkerID: w.id, Follows: jobevent.QueuesDigest(queues), Queues: queues})
		if err != nil {
			h.t.Fatal(err)
		}
		packed, _ := jobevent.Pack([]jobevent.Item{e})
		h.send(packed...)
	}
}

// orderIn publishes run orders to another queue than the fixture's.
func (h *fixture) orderIn(queue string, runs ...jobevent.Run) {
	own := h.queue
	defer func() { h.queue = own }()
	h.queue = queue
	h.order(runs...)
}

// Two workers begin to serve a created queue, run its jobs and leave it. A long attempt of their own queue goes on, and no
// attempt of either queue starts twice.
func TestWorkersFollowTheCreatedQueues(t *testing.T) {
	h := newFixture(t)
	created := h.queue + "-new"
	follow := func(c *Config, _ *timing) { c.Follow.Names = []string{"*"} }
	a, b := h.start(follow), h.start(follow)
	long := h.run("BLOCK", "")
	h.order(long)
	h.untilStarted(long)
	var before [2][]int32
	h.until("both hold partitions", func() bool {
		before[0], before[1] = h.heartbeatOf(a).Partitions[h.queue], h.heartbeatOf(b).Partitions[h.queue]
		return len(before[0]) == 6 && len(before[1]) == 6
	})
	if digest := h.heartbeatOf(a).Follows; digest != jobevent.QueuesDigest(nil) {
		t.Errorf("at first it follows %q", digest)
	}

	topics := funchost.NewQueueTopics(funchost.Config{Kafka: h.kafka})
	for range 2 { // created, removed and created again
		if err := topics.Create(t.Context(), created); err != nil {
			t.Fatal(err)
		}
		queues := []jobevent.CreatedQueue{
			{Name: created, Workers: jobevent.WorkersRunjob}, {Name: h.queue + "-pull", Workers: jobevent.WorkersPull},
		}
		h.orderQueues(queues, a, b)
		h.until("both serve the new queue", func() bool {
			return len(h.heartbeatOf(a).Partitions[created]) == 6 && len(h.heartbeatOf(b).Partitions[created]) == 6
		})
		if got := h.lastHeartbeat(a); got.Follows != jobevent.QueuesDigest(queues) || !slices.Equal(got.Queues, []string{h.queue, created}) {
			t.Errorf("it follows %q: %v", got.Follows, got.Queues)
		}
		runs := h.noops(500)
		h.orderIn(created, runs...)
		for _, run := range runs {
			h.outcome(run)
		}
		h.orderQueues(nil, a, b)
		h.until("both have left", func() bool {
			return !slices.Contains(h.heartbeatOf(a).Queues, created) && !slices.Contains(h.heartbeatOf(b).Queues, created)
		})
		if err := topics.Delete(t.Context(), created); err != nil {
			t.Fatal(err)
		}
		for _, run := range runs {
			if n := h.startsOf(run); n != 1 {
				t.Fatalf("an attempt started %d times", n)
			}
		}
	}
	if got := [2][]int32{h.lastHeartbeat(a).Partitions[h.queue], h.lastHeartbeat(b).Partitions[h.queue]}; !slices.Equal(got[0], before[0]) || !slices.Equal(got[1], before[1]) {
		t.Errorf("the partitions of their own queue were %v, and are %v", before, got)
	}
	h.open(long)
	h.outcome(long)
	if n := h.startsOf(long); n != 1 {
		t.Errorf("the long attempt started %d times", n)
	}
}

func TestAWorkerFollowsOnlyTheQueuesOfItsSetting(t *testing.T) {
	h := newFixture(t)
	alone := h.start(nil)
	mail := h.start(func(c *Config, _ *timing) { c.Follow.Names = []string{h.queue + "-m*", h.queue + "-x"} })
	queues := []jobevent.CreatedQueue{}
	for _, end := range []string{"-a", "-mail", "-x", "-xy"} {
		queues = append(queues, jobevent.CreatedQueue{Name: h.queue + end, Workers: jobevent.WorkersRunjob})
	}
	for seen := 0; h.lastHeartbeat(mail).Follows != jobevent.QueuesDigest(queues); { // as watchdog repeats it
		h.orderQueues(queues, alone, mail)
		h.until("the next heartbeat", func() bool {
			n := len(h.heartbeatsOf(mail))
			defer func() { seen = n }()
			return n > seen
		})
	}
	h.until("it serves two of them", func() bool {
		return slices.Equal(h.heartbeatOf(mail).Queues, []string{h.queue, h.queue + "-mail", h.queue + "-x"})
	})
	if got := h.lastHeartbeat(alone); got.Follows != "" || !slices.Equal(got.Queues, []string{h.queue}) {
		t.Errorf("the other follows %q: %v", got.Follows, got.Queues)
	}
}

func TestWrongFollowQueuesIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "A", "a*b", "**", "a_b*"} {
		if err := (FollowQueues{[]string{name}}).check(); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
	for _, name := range []string{"*", "mail", "mail-*"} {
		if err := (FollowQueues{[]string{name}}).check(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
