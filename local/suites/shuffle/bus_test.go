package shuffle

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// bus stands for Kafka: a log for each partition, and readers with a position in each.
type bus struct {
	partitions map[string]int32
	logs       map[place][]event.Event
	readers    []*reader
	published  map[string]int // how often, by event id
	mishaps    map[string]int // by kind, since a run without any proves nothing
	rnd        *rand.Rand     // packs items into events of version 2; nil: version 1 only
}

const (
	acceptedNotPublished = "accepted and not published"
	deliveredAgain       = "delivered again"
	killedBeforePublish  = "killed before it had published"
	settledNotPublished  = "settled and not published"
	workerFrozen         = "worker frozen"
	workerKilled         = "worker killed"
	outcomeRefused       = "outcome refused"
	wiped                = "wiped"
	packedTogether       = "published together with others"
	killedBetweenItems   = "killed when some items of an event were handled"
	calledBackEarly      = "called back before the API had received that it waits"
	callbackRefused      = "called back when it was over"
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
	again  []event.Event // delivered once, to be delivered again
	undone []event.Event // handled, but the process was killed before it could publish and acknowledge
}

func newBus() *bus {
	b := &bus{
		partitions: map[string]int32{}, logs: map[place][]event.Event{},
		published: map[string]int{}, mishaps: map[string]int{},
	}
	for _, topic := range jobevent.Topics(nil) {
		b.partitions[topic.Name] = topic.Partitions
	}
	return b
}

func (b *bus) read(name string, handle funchost.Handle, topics ...string) {
	b.readers = append(b.readers, &reader{name: name, topics: topics, handle: handle, next: map[place]int{}})
}

// publish packs items into events, and appends these to the partitions that Kafka would choose.
func (b *bus) publish(t *testing.T, items []jobevent.Item) {
	t.Helper()
	for i, it := range items {
		b.published[it.ID()]++
		if isStatus(it) {
			items[i] = it.ForFunctions() // no reader takes the public ones
		}
	}
	for _, e := range b.packed(items) {
		topic, err := jobevent.TopicOf(e)
		if err != nil {
			t.Fatal(err)
		}
		key := jobevent.Extension(e, jobevent.ExtPartitionKey)
		at := place{topic, jobevent.PartitionOf(key, b.partitions[topic])}
		b.logs[at] = append(b.logs[at], e)
	}
}

// packed puts items into events, with others or alone.
func (b *bus) packed(items []jobevent.Item) (all []event.Event) {
	if b.rnd == nil {
		for _, it := range items {
			all = append(all, it.Alone())
		}
		return all
	}
	for len(items) > 0 {
		n := b.rnd.IntN(len(items)) + 1
		if b.rnd.IntN(3) == 0 {
			n = 1
		}
		events, of := jobevent.Pack(items[:n])
		all = append(all, events...)
		for _, together := range of {
			b.mishaps[packedTogether] += len(together) - 1
		}
		items = items[n:]
	}
	return all
}

// unpacked returns the items of events, as a function's host passes them on.
func unpacked(t *testing.T, events []event.Event) (all []jobevent.Item) {
	t.Helper()
	for _, e := range events {
		items, err := jobevent.Unpack(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			if item.Err != nil {
				t.Fatal(item.Err)
			}
			all = append(all, item)
		}
	}
	return all
}

// fresh returns the partitions with events that are new to the reader, in the same order for the same seed.
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

// inOrder delivers the next new event to one reader. It delivers each event once.
func (b *bus) inOrder(t *testing.T) bool {
	t.Helper()
	for _, r := range b.readers {
		for _, at := range b.fresh(r) {
			e := b.logs[at][r.next[at]]
			r.next[at]++
			b.publish(t, r.call(t, unpacked(t, []event.Event{e})))
			return true
		}
	}
	return false
}

// shuffled delivers a batch to some reader. New events come in the order of their partition; delivered ones come
// again at any time. Sometimes the reader's results are lost, and the batch comes again later, with more behind it.
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
	if items := unpacked(t, batch); len(items) > len(batch) && rnd.IntN(4) == 0 {
		b.mishaps[killedBetweenItems]++ // any of the items may have been handled, in any order
		rnd.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		b.publish(t, part(r.call(t, items[:rnd.IntN(len(items))]), rnd))
		r.undone = batch
		return true
	}
	items := r.call(t, unpacked(t, batch))
	if rnd.IntN(6) == 0 {
		b.mishaps[killedBeforePublish]++
		b.publish(t, part(items, rnd))
		r.undone = batch
		return true
	}
	b.publish(t, items)
	return true
}

// part returns what a killed process may have published: any of the other items, and statuses only after all of
// these.
func part(items []jobevent.Item, rnd *rand.Rand) (kept []jobevent.Item) {
	others := slices.DeleteFunc(slices.Clone(items), isStatus)
	for _, e := range others {
		if rnd.IntN(2) == 0 {
			kept = append(kept, e)
		}
	}
	if len(kept) < len(others) || rnd.IntN(2) == 0 {
		return kept
	}
	for _, e := range items {
		if isStatus(e) && rnd.IntN(2) == 0 {
			kept = append(kept, e)
		}
	}
	return kept
}

func isStatus(e jobevent.Item) bool {
	return e.Type() == jobevent.TypeStatus || e.Type() == jobevent.TypesStatus || e.Type() == jobevent.TypeDeleted
}

// wipe deletes all events, even those that some readers have not received, like a broker that loses its disk.
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
		b.mishaps[deliveredAgain]++
		i := rnd.IntN(len(r.again))
		e := r.again[i]
		r.again = slices.Delete(r.again, i, i+1)
		return []event.Event{e}
	}
	return nil
}

// call passes a batch to the handler and checks the conditions that hold for every result.
func (r *reader) call(t *testing.T, batch []jobevent.Item) []jobevent.Item {
	t.Helper()
	if len(batch) == 0 {
		return nil
	}
	items, err := r.handle(t.Context(), batch)
	if err != nil {
		t.Fatalf("%s refuses %v: %v", r.name, ids(batch), err)
	}
	checkOrder(t, r.name, items)
	return items
}

// checkOrder checks that the status is the last event of a job's version, and that the status of a failed job comes
// with a dead letter.
func checkOrder(t *testing.T, who string, items []jobevent.Item) {
	t.Helper()
	more, buried := map[string]bool{}, map[string]bool{}
	for _, e := range items {
		switch e.Type() {
		case jobevent.TypeStatus:
			more[e.Subject()] = true
			status, err := jobevent.Decode[jobevent.Status](e)
			if err != nil {
				t.Fatal(err)
			}
			if status.Status == "FAILED" && !buried[e.Subject()] {
				t.Fatalf("%s publishes that %s has failed without a dead letter before: %v", who, e.Subject(), ids(items))
			}
		case jobevent.TypeDeadLettered:
			buried[e.Subject()] = true
			if more[e.Subject()] {
				t.Fatalf("%s publishes the status of %s before its dead letter: %v", who, e.Subject(), ids(items))
			}
		}
	}
}

func ids(events []jobevent.Item) []string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = e.ID()
	}
	return names
}

// check checks what a function publishes by its clock.
func check(t *testing.T, who string, items []jobevent.Item, err error) []jobevent.Item {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", who, err)
	}
	checkOrder(t, who, items)
	return items
}
