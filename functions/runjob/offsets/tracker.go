package offsets

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Tracker tracks up to which offset a partition may be committed while its records are done in any order. Use a new one
// each time the partition is assigned: records of an earlier assignment must not count. The zero value is ready to use,
// and safe for concurrent use.
type Tracker struct {
	mu sync.Mutex
	// records[head:] are the delivered records from the lowest that is not done, in the order of their offsets. They are
	// kept and not only counted because offsets have gaps (compaction, transactions).
	records []trackedRecord
	head    int
	next    int64 // one past the last delivered offset; 0 before the first
	gap     int   // records in records[head:] that are done
}

// trackedRecord has no pointer, so that the garbage collector does not scan a hundred thousand of them.
type trackedRecord struct {
	offset      int64
	deliveredAt int64 // Unix nanoseconds; 0 once it is done
}

// Deliver notes that the record at offset was read from the partition. Offsets rise. A lower one means that reading
// went back, to an older commit or to the start of a topic that was created anew: then all records from offset on will
// be delivered again, and Deliver forgets them.
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

// Done notes that the record at offset is done. An unknown offset changes nothing.
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

// Committable returns the committable offset: that of the lowest record that is not done, or one past the last
// delivered if all are done. It returns false before the first delivery.
func (t *Tracker) Committable() (offset int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.head < len(t.records) {
		return t.records[t.head].offset, true
	}
	return t.next, t.next > 0
}

// Next returns one past the last delivered offset; 0 before the first delivery.
func (t *Tracker) Next() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.next
}

// Gap returns how many done records cannot be committed because a record before them is not done.
func (t *Tracker) Gap() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gap
}

// Oldest returns the lowest record that is not done, and when it was delivered. It returns false if all are done.
func (t *Tracker) Oldest() (offset int64, since time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.head == len(t.records) {
		return 0, time.Time{}, false
	}
	oldest := t.records[t.head]
	return oldest.offset, time.Unix(0, oldest.deliveredAt), true
}

// find returns the index at which records have offset, or would have it.
func (t *Tracker) find(offset int64) (int, bool) {
	i, found := slices.BinarySearchFunc(t.records[t.head:], offset, func(r trackedRecord, offset int64) int {
		return cmp.Compare(r.offset, offset)
	})
	return t.head + i, found
}

// advance moves head past done records. When the space before head is half of all, it is freed, so that a record is
// copied once on average.
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
