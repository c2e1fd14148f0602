package shuffletest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// bus stands for Kafka: a log for each partition, and readers with a place in each.
type bus struct {
	partitions map[string]int32
	logs       map[place][]event.Event
	readers    []*reader
	said       map[string]int // how often, by event id
	mishaps    map[string]int // so that runs without any are no proof
}

const (
	acceptedNotSaid     = "accepted and not said"
	heardAgain          = "heard again"
	killedBeforePublish = "killed before it had published"
	settledNotSaid      = "settled and not said"
	workerFrozen        = "worker frozen"
	workerKilled        = "worker killed"
	outcomeRefused      = "outcome refused"
	wiped               = "wiped"
	calledBackEarly     = "called back before the API had heard that it waits"
	callbackRefused     = "called back when it was over"
)

type place struct {
	topic     string
	partition int32
}

// reader is a consumer group.
type reader struct {
	name   string
	topics []string
	handle funchost.Handle

	next   map[place]int
	again  []event.Event // heard once, to be heard once more
	undone []event.Event // handled, but the process was killed before it could publish and acknowledge
}

func newBus() *bus {
	b := &bus{
		partitions: map[string]int32{}, logs: map[place][]event.Event{},
		said: map[string]int{}, mishaps: map[string]int{},
	}
	for _, topic := range jobevent.Topics(nil) {
		b.partitions[topic.Name] = topic.Partitions
	}
	return b
}

func (b *bus) read(name string, handle funchost.Handle, topics ...string) {
	b.readers = append(b.readers, &reader{name: name, topics: topics, handle: handle, next: map[place]int{}})
}

// say puts events where Kafka would.
func (b *bus) say(t *testing.T, events []event.Event) {
	t.Helper()
	for _, e := range events {
		topic, err := jobevent.TopicOf(e)
		if err != nil {
			t.Fatal(err)
		}
		key, _ := e.Extensions()[jobevent.ExtPartitionKey].(string)
		at := place{topic, jobevent.PartitionOf(key, b.partitions[topic])}
		b.logs[at] = append(b.logs[at], e)
		b.said[e.ID()]++
	}
}

// fresh are the partitions with something that the reader has not heard, in one order for one seed.
func (b *bus) fresh(r *reader) (places []place) {
	for _, topic := range r.topics {
		for p := range b.partitions[topic] {
			if at := (place{topic, p}); r.next[at] < len(b.logs[at]) {
				places = append(places, at)
			}
		}
	}
	return places
}

func (b *bus) waiting(r *reader) bool {
	return len(r.undone) > 0 || len(r.again) > 0 || len(b.fresh(r)) > 0
}

// inOrder delivers one event, each once.
func (b *bus) inOrder(t *testing.T) bool {
	t.Helper()
	for _, r := range b.readers {
		for _, at := range b.fresh(r) {
			e := b.logs[at][r.next[at]]
			r.next[at]++
			b.say(t, r.call(t, []event.Event{e}))
			return true
		}
	}
	return false
}

// shuffled delivers a batch to some reader. What is new to it comes in the order of its partition; what
// it has heard comes once more, whenever. Sometimes what the reader says is lost, and the batch comes
// again later, with more behind it.
func (b *bus) shuffled(t *testing.T, rnd *rand.Rand) bool {
	t.Helper()
	var ready []*reader
	for _, r := range b.readers {
		if b.waiting(r) {
			ready = append(ready, r)
		}
	}
	if len(ready) == 0 {
		return false
	}
	r := ready[rnd.IntN(len(ready))]
	batch := r.undone
	r.undone = nil
	for range rnd.IntN(6) + 1 {
		batch = append(batch, b.draw(r, rnd)...)
	}
	say := r.call(t, batch)
	if rnd.IntN(6) == 0 {
		b.mishaps[killedBeforePublish]++
		b.say(t, part(say, rnd))
		r.undone = batch
		return true
	}
	b.say(t, say)
	return true
}

// part is what a process may have published when it is killed: any of the others, and statuses only
// after all of these.
func part(say []event.Event, rnd *rand.Rand) (kept []event.Event) {
	isStatus := func(e event.Event) bool { return e.Type() == jobevent.TypeStatus }
	others := slices.DeleteFunc(slices.Clone(say), isStatus)
	for _, e := range others {
		if rnd.IntN(2) == 0 {
			kept = append(kept, e)
		}
	}
	if len(kept) < len(others) || rnd.IntN(2) == 0 {
		return kept
	}
	for _, e := range say {
		if isStatus(e) && rnd.IntN(2) == 0 {
			kept = append(kept, e)
		}
	}
	return kept
}

// wipe loses all that not everybody has heard, as a broker does whose disk is gone.
func (b *bus) wipe() {
	b.mishaps[wiped]++
	clear(b.logs)
	for _, r := range b.readers {
		clear(r.next)
		r.again, r.undone = nil, nil
	}
}

func (b *bus) draw(r *reader, rnd *rand.Rand) []event.Event {
	fresh := b.fresh(r)
	switch n := rnd.IntN(len(fresh) + min(len(r.again), 3) + 1); {
	case n < len(fresh):
		at := fresh[n]
		e := b.logs[at][r.next[at]]
		r.next[at]++
		r.again = append(r.again, e)
		return []event.Event{e}
	case len(r.again) > 0:
		b.mishaps[heardAgain]++
		i := rnd.IntN(len(r.again))
		e := r.again[i]
		r.again = slices.Delete(r.again, i, i+1)
		return []event.Event{e}
	}
	return nil
}

// call hands over a batch and checks what must hold of every answer.
func (r *reader) call(t *testing.T, batch []event.Event) []event.Event {
	t.Helper()
	if len(batch) == 0 {
		return nil
	}
	say, err := r.handle(t.Context(), slices.Clone(batch))
	if err != nil {
		t.Fatalf("%s refuses %v: %v", r.name, ids(batch), err)
	}
	checkOrder(t, r.name, say)
	return say
}

// checkOrder: of a job's version the status comes last, and of a failed job it comes with a dead letter.
func checkOrder(t *testing.T, who string, say []event.Event) {
	t.Helper()
	told, buried := map[string]bool{}, map[string]bool{}
	for _, e := range say {
		switch e.Type() {
		case jobevent.TypeStatus:
			told[e.Subject()] = true
			status, err := jobevent.Decode[jobevent.Status](e)
			if err != nil {
				t.Fatal(err)
			}
			if status.Status == "FAILED" && !buried[e.Subject()] {
				t.Fatalf("%s says that %s has failed, and no dead letter before: %v", who, e.Subject(), ids(say))
			}
		case jobevent.TypeDeadLettered:
			buried[e.Subject()] = true
			if told[e.Subject()] {
				t.Fatalf("%s says the status of %s before its dead letter: %v", who, e.Subject(), ids(say))
			}
		}
	}
}

func ids(events []event.Event) []string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = e.ID()
	}
	return names
}

// check is for what says events by itself.
func check(t *testing.T, who string, say []event.Event, err error) []event.Event {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", who, err)
	}
	checkOrder(t, who, say)
	return say
}
