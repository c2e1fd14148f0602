package rejectedstore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/rejectedstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// garbage is a record with all kinds of bytes that ingest has rejected.
func garbage(offset int64, change ...func(*jobevent.Rejected)) rejectedstore.Rejected {
	recorded := time.Date(2026, 11, 23, 8, 0, 0, 123_000_000, time.UTC)
	record := jobevent.Rejected{
		Topic: jobevent.TopicCreated, Partition: 2, Offset: offset, Reason: "undecodable: no \x00 event",
		Headers: map[string]string{"who": "stranger"}, Value: []byte("\x00\xff garbage"), Key: []byte{},
		RecordHeaders: []jobevent.RecordHeader{
			{Key: []byte("who"), Value: []byte("me")}, {Key: []byte("who"), Value: []byte("stranger")}, {Key: []byte("\xfe"), Value: nil},
		},
		RecordedAt: &recorded,
	}
	for _, c := range change {
		c(&record)
	}
	return rejectedstore.NewRecord("ingest", record, uuid.Nil, time.Now().Add(-time.Minute))
}

func (h *fixture) reject(t *testing.T, records ...rejectedstore.Rejected) (added int64) {
	t.Helper()
	added, err := h.Rejected.Add(t.Context(), records)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func (h *fixture) rejected(t *testing.T, f rejectedstore.Filter) (offsets []int64, more bool) {
	t.Helper()
	if f.Limit == 0 {
		f.Limit = 200
	}
	found, more, err := h.Rejected.List(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range found {
		offsets = append(offsets, r.Record.Offset)
	}
	return offsets, more
}

func TestARejectedRecordIsKeptOnceAndByteByByte(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := garbage(7)
	bare := garbage(8, func(r *jobevent.Rejected) {
		r.Key, r.Value, r.RecordHeaders, r.RecordedAt = nil, nil, []jobevent.RecordHeader{}, nil
	})
	if added := h.reject(t, r, bare, r); added != 2 {
		t.Errorf("%d were added", added)
	}
	if added := h.reject(t, garbage(7)); added != 0 {
		t.Errorf("the same record, reported again, added %d", added)
	}
	wiped := garbage(7, func(r *jobevent.Rejected) { r.Value = []byte("another") })
	if added := h.reject(t, wiped); added != 1 {
		t.Errorf("another record at the same place, after a wipe, added %d", added)
	}
	got, err := h.Rejected.Get(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := json.Marshal(r.Record.RecordHeaders)
	if have, _ := json.Marshal(got.Record.RecordHeaders); !bytes.Equal(have, want) {
		t.Errorf("headers are %s, want %s", have, want)
	}
	if got.Record.Key == nil || len(got.Record.Key) != 0 || !bytes.Equal(got.Record.Value, r.Record.Value) || !got.Whole {
		t.Errorf("kept is %+v", got)
	}
	if got.Record.RecordedAt == nil || !got.Record.RecordedAt.Equal(*r.Record.RecordedAt) || got.Record.Partition != 2 {
		t.Errorf("kept is %+v", got)
	}
	if strings.ContainsRune(got.Record.Reason, 0) || got.Bytes != len("\x00\xff garbage")+len("whomewhostranger")+1 {
		t.Errorf("reason %q, %d bytes", got.Record.Reason, got.Bytes)
	}
	if got, err := h.Rejected.Get(t.Context(), bare.ID); err != nil || got.Record.Key != nil || got.Record.Value != nil ||
		got.Record.RecordHeaders == nil || got.Record.RecordedAt != nil || !got.Whole {
		t.Errorf("one with nothing in it is kept as %+v (%v)", got, err)
	}
	if _, err := h.Rejected.Get(t.Context(), uuid.New()); !errors.Is(err, rejectedstore.ErrNone) {
		t.Errorf("one that is not there: %v", err)
	}
}

func TestARecordThatIsCutOrHasNoHeadersIsNotWhole(t *testing.T) {
	t.Parallel()
	h := open(t)
	bare := garbage(1, func(r *jobevent.Rejected) { r.Key, r.RecordHeaders, r.RecordedAt = nil, nil, nil })
	cut := garbage(2, func(r *jobevent.Rejected) { r.Truncated = true })
	h.reject(t, bare, cut)
	for _, id := range []uuid.UUID{bare.ID, cut.ID} {
		got, err := h.Rejected.Get(t.Context(), id)
		if err != nil || got.Whole || got.Record.RecordHeaders == nil {
			t.Errorf("kept as %+v (%v)", got, err)
		}
	}
}

// An event about a rejected record must not be rejected itself, whatever was written to the topic of the dead
// letters.
func TestNothingInARejectedRecordIsRefusedByTheDatabase(t *testing.T) {
	t.Parallel()
	h := open(t)
	long := strings.Repeat("x\x00\xffü", 10_000)
	for _, at := range []time.Time{{}, time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)} {
		r := rejectedstore.NewRecord(long, jobevent.Rejected{
			Topic: long, Partition: -5, Offset: -9, Reason: long, Headers: map[string]string{long: long}, Value: []byte(long),
			RecordedAt: &at,
		}, uuid.New(), at)
		h.reject(t, r)
		got, err := h.Rejected.Get(t.Context(), r.ID)
		if err != nil || got.Record.Offset != -1 || got.RejectedAt.After(time.Now().Add(time.Minute)) {
			t.Errorf("kept is %+v (%v)", got.RejectedAt, err)
		}
	}
}

func TestRejectedRecordsAreListedNewestFirstByPagesAndFilters(t *testing.T) {
	t.Parallel()
	h := open(t)
	for i := range 5 {
		h.reject(t, garbage(int64(i), func(r *jobevent.Rejected) {
			if i%2 == 1 {
				r.Topic = jobevent.TopicCommand
			}
		}))
	}
	var got []int64
	f := rejectedstore.Filter{Limit: 2}
	for {
		page, more, err := h.Rejected.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			got = append(got, r.Record.Offset)
			f.Before = r.Cursor()
		}
		if !more {
			break
		}
	}
	if fmt.Sprint(got) != "[4 3 2 1 0]" {
		t.Errorf("listed are %v", got)
	}
	yes, no, now := true, false, time.Now()
	for _, c := range []struct {
		filter rejectedstore.Filter
		want   string
	}{
		{rejectedstore.Filter{Topic: jobevent.TopicCommand}, "[3 1]"},
		{rejectedstore.Filter{Function: "ingest", Topic: jobevent.TopicCreated}, "[4 2 0]"},
		{rejectedstore.Filter{Function: "other"}, "[]"},
		{rejectedstore.Filter{Since: &now}, "[]"},
		{rejectedstore.Filter{Until: &now}, "[4 3 2 1 0]"},
		{rejectedstore.Filter{Redriven: &yes}, "[]"},
		{rejectedstore.Filter{Redriven: &no}, "[4 3 2 1 0]"},
	} {
		if got, _ := h.rejected(t, c.filter); fmt.Sprint(got) != c.want {
			t.Errorf("by %+v listed are %v, want %s", c.filter, got, c.want)
		}
	}
}

func TestARecordIsRedrivenUnderALockAndOnlyWhenItIsOnItsTopic(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := garbage(1)
	h.reject(t, r)
	away := errors.New("broker is away")
	_, err := h.Rejected.Redrive(t.Context(), nil, r.ID, "me", func(context.Context, rejectedstore.Rejected) error { return away })
	if !errors.Is(err, away) {
		t.Fatalf("got %v", err)
	}
	var published []time.Time // the earlier redrive, as publish sees it
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			_, err := h.Rejected.Redrive(t.Context(), nil, r.ID, "me", func(_ context.Context, r rejectedstore.Rejected) error {
				mu.Lock()
				defer mu.Unlock()
				if r.RedrivenAt != nil {
					return away
				}
				published = append(published, time.Now())
				return nil
			})
			if err != nil && !errors.Is(err, away) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, err := h.Rejected.Get(t.Context(), r.ID); err != nil || len(published) != 1 || got.RedrivenBy != "me" || got.RedrivenAt == nil {
		t.Errorf("published %d times, kept is %+v (%v)", len(published), got, err)
	}
	if h.reject(t, r) != 0 {
		t.Error("reported again it is new")
	}
	gone, err := h.Rejected.Discard(t.Context(), nil, r.ID)
	if err != nil || gone.Record.Topic != r.Record.Topic {
		t.Errorf("discarded %+v (%v)", gone, err)
	}
	if _, err := h.Rejected.Discard(t.Context(), nil, r.ID); !errors.Is(err, rejectedstore.ErrNone) {
		t.Errorf("discarded twice: %v", err)
	}
	never := func(context.Context, rejectedstore.Rejected) error { t.Error("published"); return nil }
	if _, err := h.Rejected.Redrive(t.Context(), nil, r.ID, "me", never); !errors.Is(err, rejectedstore.ErrNone) {
		t.Errorf("redriven after it was discarded: %v", err)
	}
}

func TestOfAFloodOfRejectedRecordsTheNewestAreKept(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Exec(t, `insert into rejected_records (rejected_id, function, topic, headers, bytes, whole, truncated, reason, rejected_at)
		select gen_random_uuid(), 'ingest', 'job-created', '[]', 1, true, false, '', now() from generate_series(1, $1::int)`, rejectedstore.MaxRecords)
	h.reject(t, garbage(1), garbage(2))
	if n := apidbtest.One[int](t, h, "select count(*) from rejected_records"); n != rejectedstore.MaxRecords {
		t.Errorf("%d are kept", n)
	}
	if offsets, _ := h.rejected(t, rejectedstore.Filter{Limit: 3}); len(offsets) != 3 || offsets[2] != -1 {
		t.Errorf("the newest are %v", offsets)
	}
	h.Exec(t, "update rejected_records set bytes = $1 where record_offset is null", rejectedstore.MaxBytes/10)
	h.reject(t, garbage(3))
	if n := apidbtest.One[int](t, h, "select count(*) from rejected_records"); n != 9+3 {
		t.Errorf("%d are kept of %d MiB in all", n, rejectedstore.MaxBytes>>20)
	}
}

func TestRejectedRecordsAreForgottenByTheirAge(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.reject(t, garbage(1), garbage(2), garbage(3))
	h.Exec(t, "update rejected_records set rejected_at = now() - interval '3 days' where record_offset < 3")
	if more, err := h.Rejected.DeleteOld(t.Context(), 48*time.Hour, 1); err != nil || !more {
		t.Errorf("more: %v (%v)", more, err)
	}
	if more, err := h.Rejected.DeleteOld(t.Context(), 48*time.Hour, 5); err != nil || more {
		t.Errorf("more: %v (%v)", more, err)
	}
	if offsets, _ := h.rejected(t, rejectedstore.Filter{}); fmt.Sprint(offsets) != "[3]" {
		t.Errorf("left are %v", offsets)
	}
}
