package rejectedstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/nullable"
)

// The limits of the kept rejected records, of which the newest are kept: a flood of invalid records must not fill the
// disk. The others stay on the topic of the dead letters for as long as its retention.
const (
	MaxRecords = 10_000
	MaxBytes   = 256 << 20
)

const (
	maxRejectedName   = 255     // bytes of a function or a topic
	maxRejectedReason = 2 << 10 // the host sends less
)

// ErrNone is returned for an unknown id of a rejected record.
var ErrNone error = apierror.New(apierror.NotFound, "there is no such rejected record")

// Rejected is a stored record that a function could not use.
type Rejected struct {
	ID         uuid.UUID
	Function   string
	Record     jobevent.Rejected // without key, headers and value in a list
	Whole      bool              // the record can be restored exactly
	Bytes      int               // of key, headers and value
	TraceID    uuid.UUID         // zero: none
	RejectedAt time.Time
	RedrivenAt *time.Time
	RedrivenBy string

	number int64
}

// NewRecord converts an event about a rejected record. The same record, rejected by the same function, has the same
// id, also when its event arrives again; another record at its offset, after the topic was wiped, has another id.
func NewRecord(function string, record jobevent.Rejected, traceID uuid.UUID, at time.Time) Rejected {
	r := Rejected{
		Function: storable(function, maxRejectedName), Record: record, Whole: record.Whole(), TraceID: traceID,
		RejectedAt: at,
	}
	r.Record.Topic = storable(record.Topic, maxRejectedName)
	r.Record.Reason = storable(record.Reason, maxRejectedReason)
	if r.Record.RecordHeaders == nil {
		r.Record.RecordHeaders = []jobevent.RecordHeader{}
	}
	if record.Partition < 0 || record.Offset < 0 {
		r.Record.Partition, r.Record.Offset = -1, -1
	}
	sum := sha256.New()
	part := func(b []byte) { // prefixed with its length, so that different records have different sums
		_ = binary.Write(sum, binary.BigEndian, int64(len(b))) // a hash never fails
		sum.Write(b)
	}
	part([]byte(r.Function))
	part([]byte(r.Record.Topic))
	_ = binary.Write(sum, binary.BigEndian, [2]int64{int64(r.Record.Partition), r.Record.Offset})
	part(record.Key)
	part(record.Value)
	r.Bytes = len(record.Key) + len(record.Value)
	for _, header := range r.Record.RecordHeaders {
		part(header.Key)
		part(header.Value)
		r.Bytes += len(header.Key) + len(header.Value)
	}
	r.ID = uuid.UUID(sum.Sum(nil)[:16])
	r.ID[6], r.ID[8] = r.ID[6]&0x0f|0x80, r.ID[8]&0x3f|0x80 // version 8: custom
	return r
}

// storable returns text that PostgreSQL accepts, cut to the limit: an event about a rejected record must not be
// rejected itself.
func storable(text string, limit int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "�")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "")
	}
	return text
}

// Add stores records, each once, and deletes the oldest beyond the limits. It returns how many are new.
func (s *Store) Add(ctx context.Context, records []Rejected) (added int64, err error) {
	records = slices.Clone(records)
	slices.SortFunc(records, func(a, b Rejected) int { return slices.Compare(a.ID[:], b.ID[:]) })
	var p gen.RejectedInsertParams
	for _, r := range records {
		headers, err := json.Marshal(r.Record.RecordHeaders)
		if err != nil {
			return 0, fmt.Errorf("write the headers of a rejected record: %w", err)
		}
		recorded := time.Time{}
		if r.Record.RecordedAt != nil {
			recorded = *r.Record.RecordedAt
		}
		p.RejectedIDs = append(p.RejectedIDs, r.ID)
		p.Functions = append(p.Functions, r.Function)
		p.Topics = append(p.Topics, r.Record.Topic)
		p.Partitions = append(p.Partitions, r.Record.Partition)
		p.RecordOffsets = append(p.RecordOffsets, r.Record.Offset)
		p.Keys = append(p.Keys, r.Record.Key)
		p.Headers = append(p.Headers, headers)
		p.RecordValues = append(p.RecordValues, r.Record.Value)
		p.ByteCounts = append(p.ByteCounts, int32(r.Bytes))
		p.Wholes = append(p.Wholes, r.Whole)
		p.Truncateds = append(p.Truncateds, r.Record.Truncated)
		p.Reasons = append(p.Reasons, r.Record.Reason)
		p.TraceIDs = append(p.TraceIDs, r.TraceID)
		p.RecordedAts = append(p.RecordedAts, recorded)
		p.RejectedAts = append(p.RejectedAts, cmp.Or(r.RejectedAt, time.Now()))
	}
	err = s.db.Tx(ctx, func(q *gen.Queries) error {
		if added, err = q.RejectedInsert(ctx, p); err != nil || added == 0 {
			return err
		}
		_, err = q.RejectedTrim(ctx, gen.RejectedTrimParams{MaxRecords: MaxRecords, MaxBytes: MaxBytes})
		return err
	})
	return added, apidb.Classify(fmt.Sprintf("keep %d rejected records", len(records)), err)
}

// Filter narrows a list. A zero field narrows nothing.
type Filter struct {
	Function string
	Topic    string
	Since    *time.Time
	Until    *time.Time
	Redriven *bool
	Before   int64 // the Cursor of the last record of the previous page
	Limit    int
}

// Cursor returns where the page after this record begins.
func (r *Rejected) Cursor() int64 { return r.number }

// List returns rejected records, newest first; more reports that others follow.
func (s *Store) List(ctx context.Context, f Filter) (found []Rejected, more bool, err error) {
	rows, err := s.q.RejectedList(ctx, gen.RejectedListParams{
		Before: cmp.Or(f.Before, math.MaxInt64), Function: nullable.Text(f.Function), Topic: nullable.Text(f.Topic),
		Since: f.Since,
		Until: f.Until, Redriven: f.Redriven, MaxRecords: int32(f.Limit) + 1,
	})
	rows, more = apidb.Cut(rows, f.Limit)
	for _, row := range rows {
		found = append(found, listedRejected(row))
	}
	return found, more, apidb.Classify("list rejected records", err)
}

func listedRejected(row gen.RejectedListRow) Rejected {
	return newRejected(gen.RejectedRecord{
		RejectedNumber: row.RejectedNumber, RejectedID: row.RejectedID, Function: row.Function, Topic: row.Topic,
		Partition: row.Partition, RecordOffset: row.RecordOffset, Bytes: row.Bytes, Whole: row.Whole,
		Truncated: row.Truncated, Reason: row.Reason, TraceID: row.TraceID, RecordedAt: row.RecordedAt,
		RejectedAt: row.RejectedAt, RedrivenAt: row.RedrivenAt, RedrivenBy: row.RedrivenBy,
	})
}

// Get returns a rejected record with its key, headers and value, or ErrNone.
func (s *Store) Get(ctx context.Context, id uuid.UUID) (Rejected, error) {
	rows, err := s.q.RejectedGet(ctx, id)
	return oneRejected("read a rejected record", rows, err)
}

func oneRejected(doing string, rows []gen.RejectedRecord, err error) (Rejected, error) {
	if err == nil && len(rows) == 0 {
		err = ErrNone
	}
	if err != nil {
		return Rejected{}, apidb.Classify(doing, err)
	}
	r := newRejected(rows[0])
	if err := json.Unmarshal(rows[0].Headers, &r.Record.RecordHeaders); err != nil {
		return r, fmt.Errorf("%s: read its headers: %w", doing, err)
	}
	return r, nil
}

// Redrive calls publish to put a record on its topic again, once; if publish fails, nothing changes. The record is
// locked until publish returns, so publish must be quick. If the process dies after publish and before the commit,
// the record can be redriven again; functions accept a repeated record.
func (s *Store) Redrive(
	ctx context.Context, entry *apidb.Audit, id uuid.UUID, by string,
	publish func(ctx context.Context, r Rejected) error,
) (r Rejected, err error) {
	err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		rows, err := q.RejectedHold(ctx, id)
		if r, err = oneRejected("hold it", rows, err); err != nil {
			return err
		}
		if err := publish(ctx, r); err != nil {
			return err
		}
		if err := r.addTo(entry); err != nil {
			return err
		}
		at, err := q.RejectedRedriven(ctx, gen.RejectedRedrivenParams{RejectedID: id, RedrivenBy: by})
		r.RedrivenAt, r.RedrivenBy = at, by
		return err
	})
	return r, apidb.Classify("redrive a rejected record", err)
}

// Discard deletes a rejected record and returns it as a list shows it, or ErrNone.
func (s *Store) Discard(ctx context.Context, entry *apidb.Audit, id uuid.UUID) (r Rejected, err error) {
	err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		gone, err := q.RejectedDiscard(ctx, id)
		if err == nil && len(gone) == 0 {
			err = ErrNone
		}
		if err != nil {
			return err
		}
		r = listedRejected(gen.RejectedListRow(gone[0]))
		return r.addTo(entry)
	})
	return r, apidb.Classify("discard a rejected record", err)
}

// addTo adds the identity of the record to an audit entry: the row may be deleted later.
func (r *Rejected) addTo(entry *apidb.Audit) (err error) {
	if entry == nil {
		return nil
	}
	entry.Details, err = json.Marshal(struct {
		Function  string `json:"function"`
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
		Offset    int64  `json:"offset"`
	}{r.Function, r.Record.Topic, r.Record.Partition, r.Record.Offset})
	return err
}

// DeleteOld deletes up to limit records that were rejected longer than age ago, the oldest first; more reports that
// others remain.
func (s *Store) DeleteOld(ctx context.Context, age time.Duration, limit int) (more bool, err error) {
	n, err := s.q.RejectedForget(ctx, gen.RejectedForgetParams{Age: age, MaxRecords: int32(limit)})
	return n == int64(limit), apidb.Classify("forget old rejected records", err)
}

func newRejected(row gen.RejectedRecord) Rejected {
	r := Rejected{
		ID: row.RejectedID, Function: row.Function, Whole: row.Whole, Bytes: int(row.Bytes), RejectedAt: row.RejectedAt,
		RedrivenAt: row.RedrivenAt, number: row.RejectedNumber,
		Record: jobevent.Rejected{
			Topic: row.Topic, Partition: -1, Offset: -1, Reason: row.Reason, Key: row.Key, Value: row.Value,
			Truncated: row.Truncated, RecordedAt: row.RecordedAt,
		},
	}
	if row.Partition != nil && row.RecordOffset != nil {
		r.Record.Partition, r.Record.Offset = *row.Partition, *row.RecordOffset
	}
	if row.TraceID != nil {
		r.TraceID = *row.TraceID
	}
	if row.RedrivenBy != nil {
		r.RedrivenBy = *row.RedrivenBy
	}
	return r
}
