package waitstore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/idtime"
)

// Event is an event for handlers that wait.
type Event struct {
	Number  uuid.UUID // under which it is stored
	OwnerID string
	Source  string
	ID      string
	Type    string
	Subject string
	Data    json.RawMessage // nil: none
	Sealed  json.RawMessage // all of it, as it is stored
}

// Receipt is what an event has met.
type Receipt struct {
	Replayed bool // it was stored before, and changes nothing
	Jobs     int  // the jobs that waited for it
}

// Keep stores events, all or none, and gives each to the jobs that wait for it. An event whose owner, source and id are
// known changes nothing.
func (s *Store) Keep(ctx context.Context, entry *apidb.Audit, events []Event) ([]Receipt, error) {
	receipts := make([]Receipt, len(events))
	err := apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		var locks []int64
		for i := range events {
			locks = append(locks, keyOf(events[i].OwnerID, events[i].Type, "", nil))
		}
		if err := q.WaitsLockTypesShared(ctx, locks); err != nil {
			return err
		}
		woken := 0
		for i := range events {
			var err error
			if receipts[i], err = keep(ctx, q, &events[i]); err != nil {
				return err
			}
			woken += receipts[i].Jobs
			entry.SetOwner(events[i].OwnerID)
		}
		if woken == 0 {
			return nil
		}
		return q.SchedulesChanged(ctx)
	})
	return receipts, apidb.Classify("keep events", err)
}

func keep(ctx context.Context, q *gen.Queries, e *Event) (Receipt, error) {
	keys := keysOfEvent(e.OwnerID, e)
	n, err := q.EventKeep(ctx, gen.EventKeepParams{
		EventNumber: e.Number, OwnerID: e.OwnerID, Source: e.Source, EventID: e.ID, EventType: e.Type,
		Event: e.Sealed, Keys: keys,
	})
	if err != nil || n == 0 {
		return Receipt{Replayed: true}, err
	}
	jobs, err := q.WaitsReceive(ctx, gen.WaitsReceiveParams{
		OwnerID: e.OwnerID, EventType: e.Type, Keys: keys, EventNumber: e.Number,
	})
	return Receipt{Jobs: len(jobs)}, err
}

// Expire looks at the next events by age, at most limit, and deletes those that are older than age and that no job of
// the database has got.
func (s *Store) Expire(
	ctx context.Context, now time.Time, age time.Duration, after uuid.UUID, limit int,
) (apidb.Walked, error) {
	row, err := s.q.EventsExpire(ctx, gen.EventsExpireParams{
		AfterID: after, BeforeID: idtime.Before(now, age), MaxRows: int32(limit),
	})
	walked := apidb.Walked{Last: row.LastID, Gone: row.Gone, More: row.Seen == int64(limit)}
	return walked, apidb.Classify("expire events", err)
}
