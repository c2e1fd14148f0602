package schedulestore

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/cronspec"
)

const (
	// missedAge is how late a tick may fire and still count as in time. Older ticks were missed.
	missedAge = 30 * time.Second
	// catchUpMost is how many missed ticks fire, if the policy is to fire all.
	catchUpMost = 1000
	// keptTicks bounds how many ticks of a schedule are recorded at once. No more are kept anyway.
	keptTicks = 1000
)

// ticksDue returns the ticks of a schedule up to an instant, or the last ones if there are more than most. To go
// through a month of seconds would take too long, so it searches backwards from the end.
func ticksDue(row *Schedule, spec cronspec.Spec, until time.Time, most int) (ticks []time.Time, more bool) {
	if row.NextAt == nil {
		return nil, false
	}
	for back := time.Duration(most) * time.Second; ; back *= 2 {
		from := until.Add(-back)
		whole := !from.After(*row.NextAt) || back > 100*365*24*time.Hour
		if whole {
			from = *row.NextAt
		}
		ticks = ticks[:0]
		for next := row.first(spec, from); next != nil && !next.After(until); {
			ticks = append(ticks, *next)
			next = row.first(spec, next.Add(time.Nanosecond))
		}
		if whole || len(ticks) >= most {
			cut := max(0, len(ticks)-most)
			return ticks[cut:], !whole || cut > 0
		}
	}
}

// verdict is the decision about a tick.
type verdict struct {
	at   time.Time
	fire bool
	why  string // it does not fire
}

const (
	whyMissed    = "missed: no process fired it in time"
	whyOverlaps  = "the job before has not ended"
	whyOvertaken = "the next one was due already"
)

// decide applies a schedule's policies to its due ticks. busy: a job of it has not ended.
func decide(row *Schedule, ticks []time.Time, more bool, now time.Time, busy bool) []verdict {
	verdicts := make([]verdict, len(ticks))
	missed := 0
	for i, at := range ticks {
		verdicts[i] = verdict{at: at, fire: true}
		if at.Before(now.Add(-missedAge)) {
			missed = i + 1
		}
	}
	caughtUp := 0
	switch row.Missed {
	case apibody.MissedOne:
		caughtUp = 1
	case apibody.MissedAll:
		caughtUp = catchUpMost
	}
	for i := range max(0, missed-caughtUp) {
		verdicts[i] = verdict{at: ticks[i], why: withOthers(whyMissed, more && i == 0)}
	}
	overlap(row, verdicts, busy)
	return verdicts
}

// overlap leaves at most one tick to fire, if jobs of a schedule must not run at the same time.
func overlap(row *Schedule, verdicts []verdict, busy bool) {
	if row.Overlap == apibody.OverlapAllow {
		return
	}
	last := -1
	for i := range verdicts {
		v := &verdicts[i]
		if !v.fire {
			continue
		}
		if row.Overlap == apibody.OverlapSkip {
			if busy {
				*v = verdict{at: v.at, why: whyOverlaps}
			}
			busy = true
			continue
		}
		if last >= 0 {
			verdicts[last] = verdict{at: verdicts[last].at, why: whyOvertaken}
		}
		last = i
	}
}

// withOthers adds to a reason that it also applies to earlier ticks, of which there are too many to record each one.
func withOthers(reason string, others bool) string {
	if others {
		return reason + ", nor any before it"
	}
	return reason
}

// tickLog collects ticks for one statement.
type tickLog struct{ rows gen.TicksRecordParams }

func (l *tickLog) fire(schedule uuid.UUID, at time.Time, job uuid.UUID, reason string) {
	l.add(schedule, at, "fired", reason, job)
}

func (l *tickLog) skip(schedule uuid.UUID, at time.Time, reason string) {
	l.add(schedule, at, "skipped", reason, uuid.Nil)
}

func (l *tickLog) add(schedule uuid.UUID, at time.Time, outcome, reason string, job uuid.UUID) {
	l.rows.ScheduleIDs = append(l.rows.ScheduleIDs, schedule)
	l.rows.Ats = append(l.rows.Ats, at)
	l.rows.Outcomes = append(l.rows.Outcomes, outcome)
	l.rows.Reasons = append(l.rows.Reasons, reason)
	l.rows.JobIDs = append(l.rows.JobIDs, job)
}

func (l *tickLog) write(ctx context.Context, q *gen.Queries) error {
	if len(l.rows.Ats) == 0 {
		return nil
	}
	return q.TicksRecord(ctx, l.rows)
}

// scheduleMoves collects the progress of schedules for one statement.
type scheduleMoves struct{ rows gen.SchedulesFiredParams }

func (m *scheduleMoves) add(schedule uuid.UUID, next *time.Time) {
	var nextAt time.Time
	if next != nil {
		nextAt = *next
	}
	m.rows.ScheduleIDs = append(m.rows.ScheduleIDs, schedule)
	m.rows.NextAts = append(m.rows.NextAts, nextAt)
	m.rows.LastAts = append(m.rows.LastAts, time.Time{})
	m.rows.LastJobIDs = append(m.rows.LastJobIDs, uuid.Nil)
}

// fired notes the job of a tick; of several jobs the last one counts.
func (m *scheduleMoves) fired(schedule uuid.UUID, at time.Time, job uuid.UUID) {
	i := slices.Index(m.rows.ScheduleIDs, schedule)
	m.rows.LastAts[i], m.rows.LastJobIDs[i] = at, job
}

func (m *scheduleMoves) write(ctx context.Context, q *gen.Queries) error {
	if len(m.rows.ScheduleIDs) == 0 {
		return nil
	}
	return q.SchedulesFired(ctx, m.rows)
}
