package offsets

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// plainTracker is a slow and simple Tracker, for comparison.
type plainTracker struct {
	delivered []int64
	done      map[int64]bool
}

func (p *plainTracker) deliver(offset int64) {
	p.delivered = slices.DeleteFunc(p.delivered, func(o int64) bool { return o >= offset })
	p.delivered = append(p.delivered, offset)
	p.done[offset] = false
}

func (p *plainTracker) committable() (int64, bool) {
	for _, o := range p.delivered {
		if !p.done[o] {
			return o, true
		}
	}
	if len(p.delivered) == 0 {
		return 0, false
	}
	return p.delivered[len(p.delivered)-1] + 1, true
}

func (p *plainTracker) gap() int {
	to, _ := p.committable()
	n := 0
	for _, o := range p.delivered {
		if o > to && p.done[o] {
			n++
		}
	}
	return n
}

func likeThePlainTracker(t *rapid.T) {
	tracker := &Tracker{}
	plain := &plainTracker{done: map[int64]bool{}}
	last := func() int64 {
		if len(plain.delivered) == 0 {
			return rapid.Int64Range(-1, 1000).Draw(t, "start")
		}
		return plain.delivered[len(plain.delivered)-1]
	}
	deliver := func(offset int64) {
		tracker.Deliver(offset)
		plain.deliver(offset)
	}
	t.Repeat(map[string]func(*rapid.T){
		"deliver the next": func(t *rapid.T) {
			offset := last()
			for range rapid.IntRange(1, 20).Draw(t, "records") {
				offset += rapid.SampledFrom([]int64{1, 1, 1, 2, 50}).Draw(t, "step")
				deliver(offset)
			}
		},
		"deliver again from an earlier offset": func(t *rapid.T) {
			deliver(max(0, last()-rapid.Int64Range(0, 40).Draw(t, "back")))
		},
		"finish one": func(t *rapid.T) {
			if len(plain.delivered) == 0 {
				return // not Skip: rapid fails an input whose actions all skip
			}
			offset := rapid.SampledFrom(plain.delivered).Draw(t, "offset")
			tracker.Done(offset)
			plain.done[offset] = true
		},
		"finish one that is not waited for": func(t *rapid.T) {
			offset := rapid.Int64Range(0, 2000).Draw(t, "offset")
			if !slices.Contains(plain.delivered, offset) {
				tracker.Done(offset)
			}
		},
		"": func(t *rapid.T) { compareTrackers(t, tracker, plain) },
	})
}

func compareTrackers(t *rapid.T, tracker *Tracker, plain *plainTracker) {
	got, gotAny := tracker.Committable()
	want, wantAny := plain.committable()
	if got != want || gotAny != wantAny {
		t.Fatalf("committable is %d, %v, want %d, %v", got, gotAny, want, wantAny)
	}
	if got, want := tracker.Gap(), plain.gap(); got != want {
		t.Fatalf("gap is %d, want %d", got, want)
	}
	oldest, _, waits := tracker.Oldest()
	if wantWaits := slices.ContainsFunc(plain.delivered, func(o int64) bool { return !plain.done[o] }); waits != wantWaits {
		t.Fatalf("something is not done: %v, want %v", waits, wantWaits)
	}
	if waits && oldest != want {
		t.Fatalf("oldest is %d, want %d", oldest, want)
	}
}

func TestOffsetTrackerAgreesWithAPlainOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, likeThePlainTracker)
}

func FuzzOffsetTracker(f *testing.F) {
	for b := range 256 { // one of these inputs only finishes records that do not exist
		f.Add(bytes.Repeat([]byte{byte(b)}, 8000))
	}
	f.Fuzz(rapid.MakeFuzz(likeThePlainTracker))
}

func TestOffsetTrackerBeforeTheFirstRecordCommitsNothing(t *testing.T) {
	t.Parallel()
	var tracker Tracker
	if _, ok := tracker.Committable(); ok {
		t.Error("something to commit before anything was delivered")
	}
	tracker.Done(5)
	if _, ok := tracker.Committable(); ok {
		t.Error("something to commit after a record that was not delivered is done")
	}
}

func TestOffsetTrackerReturnsTheOldestRecordAndItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tracker Tracker
		begin := time.Now()
		tracker.Deliver(7)
		<-time.After(time.Minute)
		tracker.Deliver(9)
		if offset, since, ok := tracker.Oldest(); !ok || offset != 7 || !since.Equal(begin) {
			t.Errorf("oldest is %d since %v, %v", offset, since, ok)
		}
		tracker.Done(7)
		if offset, since, ok := tracker.Oldest(); !ok || offset != 9 || !since.Equal(begin.Add(time.Minute)) {
			t.Errorf("after 7 is done the oldest is %d since %v, %v", offset, since, ok)
		}
	})
}

func TestOffsetTrackerNeverCommitsPastARecordInFlight(t *testing.T) {
	t.Parallel()
	const records, workers = 100_000, 8
	var tracker Tracker
	done := make([]atomic.Bool, records)
	for o := range int64(records) {
		tracker.Deliver(o)
	}
	order := rand.Perm(records)
	var finishing sync.WaitGroup
	for w := range workers {
		finishing.Go(func() {
			for i := w; i < records; i += workers {
				done[order[i]].Store(true)
				tracker.Done(int64(order[i]))
			}
		})
	}
	finished := make(chan struct{})
	go func() { finishing.Wait(); close(finished) }()

	checked := int64(0)
	for running := true; running; {
		select {
		case <-finished:
			running = false
		default:
		}
		to, _ := tracker.Committable()
		for ; checked < to; checked++ {
			if !done[checked].Load() {
				t.Fatalf("committable is %d, and %d is not done", to, checked)
			}
		}
	}
	if checked != records || tracker.Gap() != 0 {
		t.Errorf("at the end %d of %d are committable, gap %d", checked, records, tracker.Gap())
	}
}
