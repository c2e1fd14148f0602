package alertstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

const (
	// evaluateEvery is the time between two looks at an alert: projection sums up the tallies as often.
	evaluateEvery = 10 * time.Second
	// evaluateMost is how many alerts one pass looks at, and evaluateNext the time until the pass with the next ones.
	evaluateMost = 500
	evaluateNext = 100 * time.Millisecond
	// keptNotices is how many notices of an alert are kept.
	keptNotices = 200
)

// Rules are what the jobs that send notices need of this installation.
type Rules struct {
	Queues    []string // of the installation
	Sealer    *sealing.Sealer
	KeepTrace func(traceID uuid.UUID) bool // nil: every trace
}

// Evaluated is what to publish after a pass.
type Evaluated struct {
	Jobs   []jobevent.Created
	Failed []error // of alerts that could not be handled; the next pass tries again
}

// Evaluate looks at the next alerts, and sends a notice of each that begins to fire, still fires after its quiet time,
// or is resolved. The transaction that stores the new state inserts the job of the notice, so of concurrent processes
// one inserts it. A pass in which no alert changes only reads. next is when the next pass is due.
func (s *Store) Evaluate(ctx context.Context, rules Rules) (done Evaluated, next time.Duration, err error) {
	rows, err := s.q.AlertsPage(ctx, gen.AlertsPageParams{AfterID: s.last, MaxAlerts: evaluateMost})
	if err != nil {
		return done, 0, apidb.Classify("look for alerts", err)
	}
	next = evaluateEvery
	if s.last = uuid.Nil; len(rows) == evaluateMost {
		s.last, next = rows[len(rows)-1].AlertID, evaluateNext
	}
	if len(rows) == 0 {
		return done, next, nil
	}
	alerts, now, err := s.countedAt(ctx, rows)
	if err != nil {
		return done, next, apidb.Classify("count jobs of alerts", err)
	}
	for i := range alerts {
		a := &alerts[i]
		moved, _ := decide(a.Alert, a.Count, now)
		stale := rules.Sealer.Stale(a.Destination)
		if !stale && (a.Paused || moved == stateOf(a.Alert)) {
			continue
		}
		created, err := s.settle(ctx, rules, a)
		if err != nil && ctx.Err() != nil {
			return done, next, err
		}
		if err != nil {
			done.Failed = append(done.Failed, fmt.Errorf("alert %s: %w", a.AlertID, err))
		}
		done.Jobs = append(done.Jobs, created...)
	}
	return done, next, nil
}

// state is the part of an alert that Evaluate changes.
type state struct {
	firingSince, announcedAt time.Time // zero: never
	announced                bool
}

func stateOf(a gen.Alert) (s state) {
	if a.FiringSince != nil {
		s.firingSince = *a.FiringSince
	}
	if a.AnnouncedAt != nil {
		s.announcedAt = *a.AnnouncedAt
	}
	s.announced = a.Announced
	return s
}

// reached reports whether the threshold of an alert is reached.
func reached(a gen.Alert, c Count) bool {
	return c.Failed >= int64(a.Failures) && c.Failed*100 >= c.Ended*int64(a.Percent)
}

// decide returns the next state of an alert, and the notice to send; empty: none. The end of a firing is announced only
// if the firing was. An alert that begins to fire within the quiet time of an earlier notice is announced after it, if
// it still fires.
func decide(a gen.Alert, c Count, now time.Time) (state, jobspec.NoticeState) {
	s := stateOf(a)
	if !reached(a, c) {
		was := s.announced
		s.firingSince, s.announced = time.Time{}, false
		if was {
			return s, jobspec.NoticeResolved
		}
		return s, ""
	}
	if s.firingSince.IsZero() {
		s.firingSince = now
	}
	if quiet := time.Duration(a.QuietMinutes) * time.Minute; s.announcedAt.IsZero() || now.Sub(s.announcedAt) >= quiet {
		s.announced, s.announcedAt = true, now
		return s, jobspec.NoticeFiring
	}
	return s, ""
}

// settle counts and decides again about the alert as it is now, while it is locked: what the pass counted may be old.
func (s *Store) settle(ctx context.Context, rules Rules, counted *Alert) ([]jobevent.Created, error) {
	n := sending{store: s, rules: rules}
	notify, done := s.db.BeginChange()
	defer done()
	err := s.db.Tx(ctx, func(q *gen.Queries) error {
		n.jobs, n.accepted, n.created = nil, nil, nil // the transaction may run again
		row, err := q.AlertLock(ctx, counted.AlertID)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = sealAnew(ctx, q, row, rules.Sealer)
		}
		if err != nil || row.Paused || !row.UpdatedAt.Equal(counted.UpdatedAt) {
			return err
		}
		counts, now, err := count(ctx, q, []gen.Alert{row})
		if err != nil {
			return err
		}
		moved, notice := decide(row, counts[0], now)
		if moved == stateOf(row) {
			return nil // another process was first
		}
		if notice != "" {
			if row.FiringSince == nil { // a resolved one keeps when it began
				row.FiringSince = some(moved.firingSince)
			}
			if err := n.send(ctx, q, &row, notice, counts[0], now); err != nil {
				return err
			}
		}
		err = q.AlertMove(ctx, gen.AlertMoveParams{
			AlertID: row.AlertID, FiringSince: some(moved.firingSince), Announced: moved.announced,
			AnnouncedAt: some(moved.announcedAt),
		})
		if err == nil && notify && len(n.created) > 0 {
			err = apidb.NotifyChange(ctx, q, apidb.ChangeStatus, []uuid.UUID{n.created[0].JobID})
		}
		return err
	})
	if err != nil {
		return nil, apidb.Classify("move alert", err)
	}
	s.jobs.CountAccepted(n.jobs, n.accepted)
	return n.created, nil
}

func some(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// sealAnew seals a destination that is sealed with a former key, or not at all.
func sealAnew(ctx context.Context, q *gen.Queries, row gen.Alert, sealer *sealing.Sealer) error {
	if !sealer.Stale(row.Destination) {
		return nil
	}
	stored := Alert{Alert: row}
	to, err := stored.Open(sealer)
	if err != nil {
		return err
	}
	destination, err := seal(sealer, row.Name, row.OwnerID, to)
	if err != nil {
		return err
	}
	return q.AlertSeal(ctx, gen.AlertSealParams{AlertID: row.AlertID, Destination: destination})
}

// counted adds to alerts how many of their jobs have failed and ended.
func (s *Store) counted(ctx context.Context, rows []gen.Alert) ([]Alert, error) {
	alerts, _, err := s.countedAt(ctx, rows)
	return alerts, err
}

func (s *Store) countedAt(ctx context.Context, rows []gen.Alert) (alerts []Alert, now time.Time, err error) {
	alerts = make([]Alert, len(rows))
	for i, row := range rows {
		alerts[i].Alert = row
	}
	counts, now, err := count(ctx, s.q, rows)
	for i := range counts {
		alerts[i].Count = counts[i]
	}
	return alerts, now, err
}

// since is when the window of an alert began. Tallies count by the minute, and a window has its first minute whole: it
// never misses a failure, and may be a part of a minute longer.
func since(a gen.Alert, now time.Time) time.Time {
	return now.UTC().Add(-time.Duration(a.WindowMinutes) * time.Minute).Truncate(time.Minute)
}

// count counts the jobs of alerts in their windows, which end now. It reads the tallies of each owner once, however
// many alerts it has.
func count(ctx context.Context, q *gen.Queries, rows []gen.Alert) (counts []Count, now time.Time, err error) {
	if now, err = q.Now(ctx); err != nil {
		return nil, now, err
	}
	first := map[string]time.Time{}
	for _, row := range rows {
		if at, known := first[row.OwnerID]; !known || since(row, now).Before(at) {
			first[row.OwnerID] = since(row, now)
		}
	}
	var p gen.AlertTalliesParams
	for owner, at := range first {
		p.Everyones, p.OwnerIDs, p.Sinces = append(p.Everyones, owner == ""), append(p.OwnerIDs, owner), append(p.Sinces, at)
	}
	found, err := q.AlertTallies(ctx, p)
	if err != nil {
		return nil, now, err
	}
	of := map[string][]gen.AlertTalliesRow{}
	for _, row := range found {
		of[row.OwnerID] = append(of[row.OwnerID], row)
	}
	counts = make([]Count, len(rows))
	for i, row := range rows {
		for j := range of[row.OwnerID] {
			counts[i].add(row, &of[row.OwnerID][j], since(row, now))
		}
	}
	return counts, now, nil
}

func (c *Count) add(a gen.Alert, t *gen.AlertTalliesRow, since time.Time) {
	if t.At.Before(since) || a.Queue != "" && a.Queue != t.Queue || a.JobType != "" && a.JobType != t.JobType {
		return
	}
	c.Ended += t.N
	switch {
	case t.What != string(jobstate.Failed):
	case a.ErrorCode == "":
		c.Failed += t.N
	default:
		var codes map[string]int64
		if json.Unmarshal(t.ErrorCodes, &codes) == nil { // statistics are not worth an error
			c.Failed += codes[a.ErrorCode]
		}
	}
}
