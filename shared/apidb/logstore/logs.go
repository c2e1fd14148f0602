package logstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/idtime"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Line is a line of an attempt's log.
type Line struct {
	Attempt int
	jobevent.LogLine
}

// Filter chooses the last lines of a job's log.
type Filter struct {
	Attempt  int   // 0: of all attempts
	Before   Place // zero: the end
	MaxBytes int   // of JSON, approximately
}

// Place is a position in a log.
type Place struct{ Attempt, Line int32 }

// maxParts bounds how many parts of a log are read at once: a worker sends one part a second.
const maxParts = 1000

// List returns the last matching lines of one of the owner's jobs, in order. next is the position before which older
// lines end; nil: there are none.
func (s *Store) List(ctx context.Context, owner apidb.Owner, id uuid.UUID, f Filter) (
	lines []Line, next *Place, err error,
) {
	p := gen.LogsOfJobParams{
		JobID: id, Owner: owner.Filter(), BeforeAttempt: f.Before.Attempt, BeforeLine: f.Before.Line,
		MaxBytes: int64(f.MaxBytes), MaxParts: maxParts,
	}
	if f.Attempt > 0 {
		n := int32(f.Attempt)
		p.Attempt = &n
	}
	if p.BeforeAttempt == 0 {
		p.BeforeAttempt = math.MaxInt32
	}
	rows, err := s.q.LogsOfJob(ctx, p)
	if err != nil {
		return nil, nil, apidb.Classify("get logs", err)
	}
	size := 0
	for _, row := range slices.Backward(rows) {
		if lines, err = appendLines(lines, id, row.Attempt, row.Lines); err != nil {
			return nil, nil, err
		}
		size += len(row.Lines)
	}
	if size > f.MaxBytes || len(rows) == maxParts {
		last := rows[len(rows)-1]
		next = &Place{last.Attempt, last.FirstLine}
	}
	return lines, next, nil
}

// End returns the position at the end of a job's log; zero: it has no line.
func (s *Store) End(ctx context.Context, id uuid.UUID) (Place, error) {
	row, err := s.q.LogsEnd(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return Place{}, nil
	}
	return Place{row.Attempt, row.FirstLine}, apidb.Classify("find the end of a log", err)
}

// After returns the lines of a job's log after a position, about maxBytes of them; more reports that there may be
// others.
func (s *Store) After(ctx context.Context, id uuid.UUID, after Place, maxBytes int) (
	lines []Line, end Place, more bool, err error,
) {
	const parts = 50
	rows, err := s.q.LogsAfter(ctx, gen.LogsAfterParams{
		JobID: id, AfterAttempt: after.Attempt, AfterLine: after.Line, MaxParts: parts, MaxBytes: int64(maxBytes),
	})
	if err != nil {
		return nil, after, false, apidb.Classify("get new log lines", err)
	}
	size := 0
	for _, row := range rows {
		lines, err = appendLines(lines, id, row.Attempt, row.Lines)
		if err != nil {
			return nil, after, false, err
		}
		size += len(row.Lines)
		after = Place{row.Attempt, row.FirstLine}
	}
	return lines, after, len(rows) == parts || size > maxBytes, nil
}

func appendLines(lines []Line, id uuid.UUID, attempt int32, raw json.RawMessage) ([]Line, error) {
	var part []jobevent.LogLine
	if err := json.Unmarshal(raw, &part); err != nil {
		return nil, fmt.Errorf("read log lines of job %s: %w", id, err)
	}
	for _, line := range part {
		lines = append(lines, Line{Attempt: int(attempt), LogLine: line})
	}
	return lines, nil
}

// Add stores log lines, each once.
func (s *Store) Add(ctx context.Context, logs []jobevent.AttemptLog) error {
	var p gen.LogInsertManyParams
	slices.SortFunc(logs, func(a, b jobevent.AttemptLog) int { return slices.Compare(a.JobID[:], b.JobID[:]) })
	for _, log := range logs {
		lines, err := json.Marshal(log.Lines)
		if err != nil {
			return fmt.Errorf("write log lines: %w", err)
		}
		p.JobIDs = append(p.JobIDs, log.JobID)
		p.Attempts = append(p.Attempts, int32(log.Attempt))
		p.FirstLines = append(p.FirstLines, int32(log.FirstLine))
		p.Lines = append(p.Lines, lines)
	}
	notify, done := s.db.BeginChange()
	defer done()
	err := s.db.Tx(ctx, func(q *gen.Queries) error {
		if err := q.LogInsertMany(ctx, p); err != nil || !notify {
			return err
		}
		return apidb.NotifyChange(ctx, q, apidb.ChangeLog, slices.Compact(slices.Clone(p.JobIDs)))
	})
	return apidb.Classify(fmt.Sprintf("add %d runs of log lines", len(logs)), err)
}

// Expire looks at the log lines of the next jobs that were accepted age ago, at most limit rows, and deletes those of
// deleted jobs.
func (s *Store) Expire(
	ctx context.Context, now time.Time, age time.Duration, after uuid.UUID, limit int,
) (apidb.Walked, error) {
	p := gen.LogsExpireParams{AfterID: after, BeforeID: idtime.Before(now, age), MaxRows: int32(limit)}
	var row gen.LogsExpireRow
	err := s.db.Tx(ctx, func(q *gen.Queries) (err error) {
		row, err = q.LogsExpire(ctx, p)
		return err
	})
	walked := apidb.Walked{Last: row.LastID, Gone: row.Gone, More: row.Seen == int64(limit)}
	return walked, apidb.Classify("expire logs", err)
}
