package schedulestore

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

const (
	// The limits of one pass, since it keeps its schedules locked.
	fireSchedules = 100
	fireJobs      = 1000
	fireBytes     = 32 << 20

	// The limits of one owner in a pass, so that its missed ticks leave room for other owners.
	fireOwnerJobs  = fireJobs / 4
	fireOwnerBytes = fireBytes / 4

	// cancelEvery is when a cancel is tried again that an unanswered command or callback blocks, and cancelsMost how
	// many are tried.
	cancelEvery = time.Second
	cancelsMost = 100

	// fireAgain is when to look again at schedules that another process was firing.
	fireAgain = 50 * time.Millisecond
)

// Fired has what must be published after a pass over the schedules.
type Fired struct {
	Jobs    []jobevent.Created
	Cancels []commandstore.Command
	Failed  []FailedSchedule
}

// changed returns the jobs that are new or have a new command.
func (f *Fired) changed() (ids []uuid.UUID) {
	for i := range f.Jobs {
		ids = append(ids, f.Jobs[i].JobID)
	}
	for i := range f.Cancels {
		ids = append(ids, f.Cancels[i].JobID)
	}
	return ids
}

// FailedSchedule is a schedule that could not fire, and is left alone for a while.
type FailedSchedule struct {
	ScheduleID uuid.UUID
	Err        error
	Again      time.Duration
}

// Fire makes jobs of the due ticks, or records why not. A job, its tick and the schedule's next instant are one
// transaction, so that of concurrent processes one fires each tick. next is how long until a tick is due, at most
// idle; zero if more was due than one pass handles.
func (s *Store) Fire(ctx context.Context, rules Rules, idle time.Duration) (
	fired Fired, next time.Duration, err error,
) {
	pass, next, err := s.firePass(ctx, rules, idle, fireSchedules)
	if err == nil || ctx.Err() != nil || len(pass.took) == 0 {
		return pass.fired, next, apidb.Classify("fire schedules", err)
	}
	return s.fireApart(ctx, rules, idle)
}

// fireApart fires schedules one by one after a pass over many has failed: the schedule that failed must not stop the
// others.
func (s *Store) fireApart(ctx context.Context, rules Rules, idle time.Duration) (
	fired Fired, next time.Duration, err error,
) {
	bytes := 0
	for range fireSchedules {
		if bytes >= fireBytes {
			break // the next pass continues
		}
		pass, next, err := s.firePass(ctx, rules, idle, 1)
		switch {
		case len(pass.took) == 0 || ctx.Err() != nil:
			return fired, next, apidb.Classify("fire schedules", err)
		case err != nil:
			id := pass.took[0]
			fired.Failed = append(fired.Failed, FailedSchedule{ScheduleID: id, Err: err, Again: s.held.hold(id)})
		default:
			fired.Jobs = append(fired.Jobs, pass.fired.Jobs...)
			fired.Cancels = append(fired.Cancels, pass.fired.Cancels...)
			bytes += pass.bytes
		}
	}
	return fired, 0, nil
}

// firePass is one transaction. If it fails, the pass still lists the schedules that it took, and has changed nothing.
func (s *Store) firePass(ctx context.Context, rules Rules, idle time.Duration, most int32) (
	pass firing, next time.Duration, err error,
) {
	held, again := s.held.now(idle)
	resting, _ := s.pace.now(idle)
	notify, done := s.db.BeginChange()
	defer done()
	err = s.db.RawTx(ctx, func(tx pgx.Tx) (err error) {
		pass = firing{
			tx: tx, q: gen.New(tx), newID: s.db.NewIDAt, rules: rules, most: most, held: held, resting: resting, pace: &s.pace,
			owners: map[string]*ownersRoom{},
		}
		if err = pass.run(ctx); err == nil {
			pass.resting, again = s.pace.now(again)
			next, err = pass.next(ctx, again)
		}
		if err == nil && notify {
			err = apidb.NotifyChange(ctx, pass.q, apidb.ChangeStatus, pass.fired.changed())
		}
		return err
	})
	if err != nil {
		pass.fired = Fired{}
		return pass, 0, err
	}
	s.jobs.CountAccepted(pass.jobs, pass.accepted)
	s.held.free(pass.took)
	return pass, next, nil
}

// Listen calls wake whenever a schedule has changed. Meanwhile the store notifies watchers of the jobs that it makes.
// It ends with ctx or with its connection.
func (s *Store) Listen(ctx context.Context, wake func()) error {
	return s.db.ListenAndNotify(ctx, "jobweaver_schedules", wake)
}
