package kafkaevent

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/testwait"
)

// worker uses a GroupConsumer as functions/runjob does: it takes what it has room for and marks when
// it likes.
type worker struct {
	*GroupConsumer
	stop func()
}

func (p *place) worker(hooks Hooks) *worker {
	p.t.Helper()
	c, err := NewGroupConsumer(p.cfg, p.group, []string{p.topic})
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, hooks) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			p.t.Errorf("run consumer: %v", err)
		}
	})
	p.t.Cleanup(stop)
	return &worker{GroupConsumer: c, stop: stop}
}

// takeAll takes until it has n records.
func (w *worker) takeAll(ctx context.Context, t *testing.T, n int) (got []Records) {
	t.Helper()
	for n > 0 {
		taken := w.Take(n, 1<<20)
		for _, r := range taken {
			n -= len(r.Messages)
		}
		got = append(got, taken...)
		if len(taken) > 0 {
			continue
		}
		select {
		case <-w.Ready():
		case <-ctx.Done():
			t.Fatalf("%d records never came", n)
		}
	}
	return got
}

func TestTakeGivesNoMoreThanThereIsRoomFor(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, time.Minute)
	p := newPlace(t)
	publish(t, p.producer(), p.events(0, 200, 30))
	w := p.worker(Hooks{})
	first := w.takeAll(ctx, t, 1)
	until(ctx, t, "all is fetched", func() bool { return w.fetched() == 199 })
	if got := w.Take(0, 1<<20); got != nil {
		t.Errorf("took %v without room", got)
	}
	if got := w.Take(10, 1); len(got) != 1 || len(got[0].Messages) != 1 {
		t.Errorf("took %d records for one byte, want one, or the largest would never come", len(got))
	}
	next := map[*Partition]int64{first[0].Partition: 1}
	taken := func(n int) {
		for _, r := range w.takeAll(ctx, t, n) {
			for _, m := range r.Messages {
				if want := next[r.Partition]; want != 0 && m.Offset < want {
					t.Errorf("partition %d gave %d after %d", r.Partition.ID, m.Offset, want-1)
				}
				next[r.Partition] = m.Offset + 1
			}
		}
	}
	for range 12 {
		taken(1)
	}
	if len(next) < 6 { // of thirty keys
		t.Errorf("records of %d partitions only, though all take turns", len(next))
	}
	taken(100)
}

func TestARevokeCommitsWhatIsDoneAndDoesNotWaitForTheRest(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, time.Minute)
	p := newPlace(t)
	publish(t, p.producer(), p.events(0, 120, 60))

	// The first worker has finished the first record of each partition and still works on the others;
	// at a revoke it marks what it can.
	var mu sync.Mutex
	done := map[*Partition]int64{}
	assigned, revoked := 0, 0
	first := p.worker(Hooks{
		Assigned: func(*Partition) {
			mu.Lock()
			defer mu.Unlock()
			assigned++
		},
		Revoked: func(part *Partition) {
			mu.Lock()
			defer mu.Unlock()
			revoked++
			if next, ok := done[part]; ok {
				part.Mark(next)
			}
		},
	})
	taken := first.takeAll(ctx, t, 120)
	mu.Lock()
	for _, r := range taken {
		if _, ok := done[r.Partition]; !ok {
			done[r.Partition] = r.Messages[0].Offset + 1
		}
	}
	partitions := int64(len(done))
	if assigned != 12 {
		t.Errorf("got %d partitions, want 12", assigned)
	}
	mu.Unlock()

	second := p.worker(Hooks{})
	until(ctx, t, "the second holds its half", func() bool { return len(second.Partitions()) == 6 })
	first.stop()
	until(ctx, t, "the second holds all", func() bool { return len(second.Partitions()) == 12 })
	for _, r := range second.takeAll(ctx, t, 120-int(partitions)) {
		if first := r.Messages[0].Offset; first == 0 {
			t.Errorf("partition %d begins again though its first record was marked", r.Partition.ID)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if revoked != 12 {
		t.Errorf("lost %d partitions, want 12", revoked)
	}
}

// They were taken over one after another, each behind two long polls.
func TestPartitionsWithoutNewRecordsAreTakenOverAtOnce(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, time.Minute)
	p := newPlace(t)
	began := time.Now()
	first, second := p.worker(Hooks{}), p.worker(Hooks{})
	for _, w := range []*worker{first, second} {
		until(ctx, t, "each has its half", func() bool { return len(w.Partitions()) == 6 })
	}
	first.stop()
	until(ctx, t, "the second has all", func() bool { return len(second.Partitions()) == 12 })
	if took := time.Since(began); took > 6*longPoll { // it takes one or two, and took nine
		t.Errorf("after %s", took)
	}
}

func TestAMarkOfALostPartitionDoesNothing(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, time.Minute)
	p := newPlace(t)
	publish(t, p.producer(), p.events(0, 60, 60))
	first := p.worker(Hooks{})
	taken := first.takeAll(ctx, t, 60)
	second := p.worker(Hooks{})
	until(ctx, t, "the second holds its half", func() bool { return len(second.Partitions()) == 6 })
	held := first.Partitions()
	lost := slices.DeleteFunc(slices.Clone(taken), func(r Records) bool { return slices.Contains(held, r.Partition) })
	second.stop()
	until(ctx, t, "the first holds all again", func() bool { return len(first.Partitions()) == 12 })
	if len(lost) == 0 {
		t.Error("lost none of the partitions with records")
	}
	for _, r := range lost {
		r.Partition.Mark(100) // in the same session, where the partition is held again
	}
	first.stop()
	for _, r := range taken {
		r.Partition.Mark(100)
	}
	if n := p.committed(); n != 0 {
		t.Errorf("%d records committed", n)
	}
}

func TestStopWaitsNeitherForAStalledRebalanceNorForADeadBroker(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, 2*time.Minute)
	b := newBroker(t)
	b.createTopic()
	release := make(chan struct{})
	stuck := b.worker(Hooks{Revoked: func(*Partition) { <-release }})
	until(ctx, t, "the first holds all", func() bool { return len(stuck.Partitions()) == 12 })
	second := b.worker(Hooks{})
	until(ctx, t, "the second is in", second.Joined)
	third := b.worker(Hooks{})
	until(ctx, t, "all wait for the first", func() bool { return b.state() == "PreparingRebalance" && len(b.members()) == 3 })
	<-time.After(2 * heartbeat) // by then the second has received it and waits in its join
	began := time.Now()
	second.stop()
	if took := time.Since(began); took > leaveTimeout+5*time.Second {
		t.Errorf("left a stalled group in %s", took)
	}
	b.stop()
	began = time.Now()
	close(release)
	third.stop()
	stuck.stop()
	if took := time.Since(began); took > 2*leaveTimeout+5*time.Second {
		t.Errorf("left without a broker in %s", took)
	}
}
