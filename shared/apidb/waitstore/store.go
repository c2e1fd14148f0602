// Package waitstore keeps the events and the calls that handlers wait for, and wakes their jobs. It also keeps what
// their steps returned.
//
// Why: docs/decisions/workers.md#a-handler-waits-in-the-api-database
package waitstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
)

// Status is how a wait stands.
type Status string

// The statuses of a wait.
const (
	Open     Status = "OPEN"
	Done     Status = "DONE" // its event has come, or its child has ended
	TimedOut Status = "TIMED_OUT"
	Closed   Status = "CLOSED" // its job ended first, or its child failed and so did its job
)

// EventWait is what a wait names of an event.
type EventWait struct {
	Type    string                     `json:"type"`
	Source  string                     `json:"source,omitempty"`  // empty: any
	Subject string                     `json:"subject,omitempty"` // empty: any
	Match   map[string]json.RawMessage `json:"match,omitempty"`   // by path: scalars that the data must have
}

// Asked is a wait as a handler asks for it.
type Asked struct {
	Name    string
	Group   string        // empty: it wakes its job alone
	Timeout time.Duration // 0: none
	Event   *EventWait    // nil: it waits for a child
	Sealed  string        // Event as it is stored
}

// Wait is a stored wait.
type Wait struct {
	Name      string
	Status    Status
	Attempt   int // that asked last
	CreatedAt time.Time
	Until     *time.Time // nil: for as long as it takes
	DoneAt    *time.Time

	EventType   string // empty: it waits for a child
	Sealed      string // what it names of the event
	EventNumber uuid.UUID
	Event       json.RawMessage // sealed; nil: none has come

	Run   int    // the number of the child
	Child *Child // nil: there is none yet
}

// Child is a job that a handler has called.
type Child struct {
	JobID   uuid.UUID       `json:"jobId"`
	JobType string          `json:"jobType"`
	Status  jobstate.Status `json:"status"`

	Cancelling bool `json:"cancelling"` // a cancel has been asked for
}

// ErrOver refuses waits of a job that has ended.
var ErrOver = errors.New("the job has ended")

// MostOfJob is how many waits a job may have.
const MostOfJob = 1_000

// ErrFull refuses a further wait of a job.
var ErrFull = fmt.Errorf("a job has at most %d waits", MostOfJob)

// ChildEvent is the identity of the event that stands for a call: the source names the parent, and the id the wait.
func ChildEvent(parent uuid.UUID, name string, run int) (source, id string) {
	return jobstore.ChildSource + parent.String(), strconv.Itoa(run) + ":" + name
}

// Store is safe for concurrent use.
type Store struct {
	db *apidb.Store
	q  *gen.Queries
}

// New makes the store on a database.
func New(db *apidb.Store) *Store { return &Store{db: db, q: db.Queries()} }

// Parent is the job whose handler waits.
type Parent struct {
	JobID   uuid.UUID
	OwnerID string
	TraceID uuid.UUID
}

// Ask stores waits of a job, and returns how they stand in the order of asked. A wait that the job has already stands
// as before, whatever is asked now. If the event of a wait has come before, the wait is done at once. A child that has
// no job yet, Child is nil, is the caller's to make, with ChildEvent. The error is ErrNoJob, ErrOver, or ErrFull.
func (s *Store) Ask(
	ctx context.Context, owner apidb.Owner, jobID uuid.UUID, attempt int, asked []Asked,
) (parent Parent, waits []Wait, err error) {
	err = s.db.Tx(ctx, func(q *gen.Queries) error {
		job, err := q.JobLock(ctx, gen.JobLockParams{JobID: jobID, Owner: owner.Filter()})
		if err != nil {
			return err
		}
		if jobstate.Status(job.Status).Terminal() {
			return ErrOver
		}
		parent = Parent{JobID: jobID, OwnerID: job.OwnerID, TraceID: job.TraceID}
		t := asking{q: q, parent: parent, attempt: attempt, at: job.At}
		waits, err = t.ask(ctx, asked)
		return err
	})
	return parent, waits, apidb.Classify(fmt.Sprintf("keep %d waits of job %s", len(asked), jobID), err)
}

// asking is the transaction of Ask.
type asking struct {
	q       *gen.Queries
	parent  Parent
	attempt int
	at      time.Time
	known   map[string]gen.WaitsLockRow
	taken   []uuid.UUID // the events that the job has
}

func (t *asking) ask(ctx context.Context, asked []Asked) ([]Wait, error) {
	if err := t.lock(ctx, asked); err != nil {
		return nil, err
	}
	waits := make([]Wait, len(asked))
	for i := range asked {
		waits[i] = t.standing(&asked[i])
		if waits[i].Status == Open && waits[i].EventType != "" {
			if err := t.receive(ctx, &asked[i], &waits[i]); err != nil {
				return nil, err
			}
		}
	}
	if err := t.findChildren(ctx, waits); err != nil {
		return nil, err
	}
	for i := range waits {
		w := &waits[i]
		if w.Status == Open && w.Until != nil && !t.at.Before(*w.Until) {
			w.Status = TimedOut
		}
	}
	return waits, t.q.WaitsKeep(ctx, t.params(asked, waits))
}

// lock locks the types of the events, and the job's waits.
func (t *asking) lock(ctx context.Context, asked []Asked) error {
	var locks []int64
	for i := range asked {
		if e := asked[i].Event; e != nil {
			locks = append(locks, keyOf(t.parent.OwnerID, e.Type, "", nil))
		}
	}
	slices.Sort(locks)
	if locks = slices.Compact(locks); len(locks) > 0 {
		if err := t.q.WaitsLockTypes(ctx, locks); err != nil {
			return err
		}
	}
	rows, err := t.q.WaitsLock(ctx, t.parent.JobID)
	if err != nil {
		return err
	}
	t.known = make(map[string]gen.WaitsLockRow, len(rows))
	for _, row := range rows {
		t.known[row.Name] = row
		if row.EventNumber != nil {
			t.taken = append(t.taken, *row.EventNumber)
		}
	}
	added := 0
	for i := range asked {
		if _, ok := t.known[asked[i].Name]; !ok {
			added++
		}
	}
	if len(rows)+added > MostOfJob {
		return ErrFull
	}
	return nil
}

// standing returns how a wait stands before its event or child is looked for.
func (t *asking) standing(a *Asked) Wait {
	w := Wait{Name: a.Name, Status: Open, Attempt: t.attempt, CreatedAt: t.at, Sealed: a.Sealed}
	if a.Timeout > 0 {
		until := t.at.Add(a.Timeout)
		w.Until = &until
	}
	if a.Event != nil {
		w.EventType = a.Event.Type
	} else {
		w.Run = 1
	}
	row, ok := t.known[a.Name]
	switch {
	case !ok:
		return w
	case row.EventType == nil != (a.Event == nil): // the code has changed: it waits for something else now
		w.Run = int(row.Run) + w.Run
		return w
	case Status(row.Status) == Closed:
		w.Run = int(row.Run)
		return w
	}
	w.Status, w.Until, w.DoneAt, w.Run = Status(row.Status), row.UntilAt, row.DoneAt, int(row.Run)
	w.EventNumber = nullable.Value(row.EventNumber)
	return w
}

// receive looks for an event that has come before.
func (t *asking) receive(ctx context.Context, a *Asked, w *Wait) error {
	owner, keys := t.parent.OwnerID, keysOfWait(t.parent.OwnerID, a.Event)
	if t.taken == nil {
		t.taken = []uuid.UUID{}
	}
	if len(keys) == 1 {
		row, err := t.q.EventOfType(ctx, gen.EventOfTypeParams{OwnerID: owner, EventType: a.Event.Type, Taken: t.taken})
		return t.take(w, row.EventNumber, err)
	}
	row, err := t.q.EventKept(ctx, gen.EventKeptParams{
		Keys: keys, OwnerID: owner, EventType: a.Event.Type, Taken: t.taken,
	})
	return t.take(w, row.EventNumber, err)
}

func (t *asking) take(w *Wait, event uuid.UUID, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil {
		w.Status, w.EventNumber = Done, event
		t.taken = append(t.taken, event)
	}
	return err
}

// findChildren finds the jobs of calls. A child that failed, or was cancelled, before its parent ended is called once
// more.
func (t *asking) findChildren(ctx context.Context, waits []Wait) error {
	if err := findChildren(ctx, t.q, t.parent, waits); err != nil {
		return err
	}
	for i := range waits {
		w := &waits[i]
		if w.EventType != "" {
			continue
		}
		closed := Status(t.known[w.Name].Status) == Closed
		switch {
		case w.Child == nil:
			w.Status = Open
		case closed && w.Child.Status != jobstate.Completed && (w.Child.Status.Terminal() || w.Child.Cancelling):
			w.Run, w.Child, w.Status = w.Run+1, nil, Open
		case w.Child.Status.Terminal():
			w.Status = Done
		default: // it runs, perhaps because a person has retried it
			w.Status, w.DoneAt = Open, nil
		}
	}
	return nil
}

func findChildren(ctx context.Context, q *gen.Queries, parent Parent, waits []Wait) error {
	p := gen.WaitsChildrenParams{ParentID: parent.JobID, OwnerID: parent.OwnerID}
	for i := range waits {
		if waits[i].EventType != "" {
			continue
		}
		source, id := ChildEvent(parent.JobID, waits[i].Name, waits[i].Run)
		p.Ordinals, p.Names = append(p.Ordinals, int32(i)), append(p.Names, waits[i].Name)
		p.Runs = append(p.Runs, int32(waits[i].Run))
		p.Sources, p.EventIDs = append(p.Sources, source), append(p.EventIDs, id)
	}
	if len(p.Ordinals) == 0 {
		return nil
	}
	rows, err := q.WaitsChildren(ctx, p)
	for _, row := range rows {
		if err = errors.Join(err, json.Unmarshal(row.Child, &waits[row.Ordinal].Child)); err != nil {
			return err
		}
	}
	return err
}

func (t *asking) params(asked []Asked, waits []Wait) gen.WaitsKeepParams {
	p := gen.WaitsKeepParams{JobID: t.parent.JobID, OwnerID: t.parent.OwnerID, Attempt: int32(t.attempt)}
	for i := range waits {
		w, a := &waits[i], &asked[i]
		var keys []int64
		if a.Event != nil {
			keys = keysOfWait(t.parent.OwnerID, a.Event)
		}
		p.Names = append(p.Names, w.Name)
		p.Statuses = append(p.Statuses, string(w.Status))
		p.GroupNames = append(p.GroupNames, a.Group)
		p.UntilAts = append(p.UntilAts, nullable.Value(w.Until))
		p.EventTypes = append(p.EventTypes, w.EventType)
		p.Matches = append(p.Matches, w.Sealed)
		p.Keys = append(p.Keys, arrayLiteral(keys))
		p.FirstKeys = append(p.FirstKeys, lastOf(keys))
		p.EventNumbers = append(p.EventNumbers, w.EventNumber)
		p.Runs = append(p.Runs, int32(w.Run))
	}
	return p
}

// lastOf returns the key by which a wait is found: one that names a member, if there is one.
func lastOf(keys []int64) int64 {
	if len(keys) == 0 {
		return 0
	}
	return keys[len(keys)-1]
}

func arrayLiteral(keys []int64) string {
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = strconv.FormatInt(key, 10)
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// Events returns the events of waits that are done, by their numbers, as they are stored.
func (s *Store) Events(ctx context.Context, waits []Wait) (map[uuid.UUID]json.RawMessage, error) {
	var numbers []uuid.UUID
	for i := range waits {
		if waits[i].EventNumber != uuid.Nil {
			numbers = append(numbers, waits[i].EventNumber)
		}
	}
	if len(numbers) == 0 {
		return nil, nil
	}
	rows, err := s.q.EventsNumbered(ctx, numbers)
	events := make(map[uuid.UUID]json.RawMessage, len(rows))
	for _, row := range rows {
		events[row.EventNumber] = row.Event
	}
	return events, apidb.Classify("read events", err)
}

// ChildEnds returns how the children of a job's waits ended last, by the names of the waits: jobs with a snapshot, also
// of those that are deleted.
func (s *Store) ChildEnds(ctx context.Context, parent uuid.UUID, names []string) (map[string]jobstore.Job, error) {
	if len(names) == 0 {
		return nil, nil
	}
	rows, err := s.q.WaitsChildEnds(ctx, gen.WaitsChildEndsParams{ParentID: parent, Names: names})
	ends := make(map[string]jobstore.Job, len(rows))
	for _, row := range rows {
		snapshot, err := jobstore.ReadSnapshot(row.JobID, nullable.Value(row.Snapshot))
		if err != nil {
			return nil, err
		}
		ends[row.Name] = jobstore.Job{JobID: row.JobID, Snapshot: snapshot}
	}
	return ends, apidb.Classify("read the ends of children", err)
}

// OfJob returns the waits of a job, the oldest first, with their events and children.
func (s *Store) OfJob(ctx context.Context, parent Parent) ([]Wait, error) {
	rows, err := s.q.WaitsOfJob(ctx, parent.JobID)
	if err != nil || len(rows) == 0 {
		return nil, apidb.Classify("list waits", err)
	}
	waits := make([]Wait, len(rows))
	for i, row := range rows {
		waits[i] = Wait{
			Name: row.Name, Status: Status(row.Status), Attempt: int(row.Attempt), CreatedAt: row.CreatedAt,
			Until: row.UntilAt, DoneAt: row.DoneAt, EventType: nullable.Value(row.EventType),
			Sealed: nullable.Value(row.Match), EventNumber: nullable.Value(row.EventNumber), Event: row.Event, Run: int(row.Run),
		}
	}
	return waits, apidb.Classify("list waits", findChildren(ctx, s.q, parent, waits))
}
