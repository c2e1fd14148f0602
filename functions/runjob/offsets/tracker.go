package offsets

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Tracker knows how far one partition may be committed while its records finish in any order.
// Use a new one for each claim of a partition: what an earlier claim still finishes then counts for nothing here.
// The zero value is ready, and safe for concurrent use.
type Tracker struct {
	mu sync.Mutex
	// records[head:] are the delivered ones from the lowest that is not done, in the order of their offsets;
	// what was delivered is kept, not counted, because offsets have gaps (compaction, transactions).
	records []trackedRecord
	head    int
	next    int64 // one past the last delivered offset; 0 before the first
	gap     int   // records in records[head:] that are done
}

// trackedRecord holds no pointer, so that a hundred thousand of them cost the garbage collector nothing.
type trackedRecord struct {
	offset      int64
	deliveredAt int64 // Unix nanoseconds; 0 once it is done
}

// Deliver notes that the record at offset was taken from the partition. Offsets rise; one that does not means that
// reading went back (to an older commit, or to the start of a topic that was made anew), and whatever is there from
// offset on will be delivered again, so it is forgotten here.
func (t *Tracker) Deliver(offset int64) { t.DeliverAt(offset, time.Now()) }

// DeliverAt is Deliver at an instant.
func (t *Tracker) DeliverAt(offset int64, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if offset < t.next {
		t.forgetFrom(offset)
	}
	t.records = append(t.records, trackedRecord{offset: offset, deliveredAt: now.UnixNano()})
	t.next = offset + 1
}

// Done notes that the record at offset needs nothing more. An offset that is not waited for changes nothing.
func (t *Tracker) Done(offset int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, found := t.find(offset)
	if !found || t.records[i].deliveredAt == 0 {
		return
	}
	t.records[i].deliveredAt = 0
	t.gap++
	t.advance()
}

// Committable returns the offset to commit: that of the lowest record not done, or one past the last delivered when
// all are. It is false before the first delivery.
func (t *Tracker) Committable() (offset int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.head < len(t.records) {
		return t.records[t.head].offset, true
	}
	return t.next, t.next > 0
}

// Gap returns how many records are done and not committable, because one before them is not done.
func (t *Tracker) Gap() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gap
}

// Oldest returns the lowest record that is not done, and since when it is here. It is false when all are done.
func (t *Tracker) Oldest() (offset int64, since time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.head == len(t.records) {
		return 0, time.Time{}, false
	}
	oldest := t.records[t.head]
	return oldest.offset, time.Unix(0, oldest.deliveredAt), true
}

// find returns where in records offset is, or would be.
func (t *Tracker) find(offset int64) (int, bool) {
	i, found := slices.BinarySearchFunc(t.records[t.head:], offset, func(r trackedRecord, offset int64) int {
		return cmp.Compare(r.offset, offset)
	})
	return t.head + i, found
}

// advance moves head past what is done. The room before head is taken back when it is half of all, so that a record
// is moved once on average.
func (t *Tracker) advance() {
	for t.head < len(t.records) && t.records[t.head].deliveredAt == 0 {
		t.head++
		t.gap--
	}
	if t.head >= len(t.records)-t.head {
		t.records = t.records[:copy(t.records, t.records[t.head:])]
		t.head = 0
	}
}

func (t *Tracker) forgetFrom(offset int64) {
	i, _ := t.find(offset)
	for _, r := range t.records[i:] {
		if r.deliveredAt == 0 {
			t.gap--
		}
	}
	t.records = t.records[:i]
}
