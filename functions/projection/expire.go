package projection

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
)

const (
	// grace is how much longer than the scheduler the API keeps a job and the id of a deleted job: as a rule the
	// scheduler's job.deleted deletes the job, and its tombstone is away before the API forgets the id.
	grace = 24 * time.Hour
	// expireRows is how many rows one step of a walk visits.
	expireRows = 1000
	// expireShare bounds the time of the walks: at most 1 / expireShare of all time.
	expireShare = 10
	// expireRest is the time between two walks.
	expireRest = time.Hour
)

// The stages of an expiry: old jobs, the ids of deleted ones, batches without jobs, the remaining logs of deleted jobs,
// the audit log, events that no job has got, rejected records.
const (
	stageJobs = iota
	stageDeleted
	stageBatches
	stageLogs
	stageAudit
	stageEvents
	stageRejected
	stages
)

// expiry has the position of the walk over old rows, one stage after the other. It exists in memory only.
type expiry struct {
	ages     statusstore.Ages
	deleted  time.Duration // of ids; 0: for ever
	audit    time.Duration // 0: for ever
	events   time.Duration // 0: for ever
	rejected time.Duration // 0: for ever
	stage    int
	after    uuid.UUID
	due      time.Time // of the next step; zero: at once
}

func newExpiry(cfg Config) expiry {
	withGrace := func(age time.Duration) time.Duration {
		if age > 0 {
			age += grace
		}
		return age
	}
	return expiry{
		deleted: withGrace(cfg.Forget), audit: cfg.Audit, events: cfg.Events, rejected: cfg.Rejected,
		ages: statusstore.Ages{
			Completed: withGrace(cfg.Completed), Failed: withGrace(cfg.Failed), Cancelled: withGrace(cfg.Cancelled),
		},
	}
}

// expire takes a step of the walk when it is due, and returns when the next one is. A failure to delete does not delay
// the function's other work.
func (f *Function) expire(ctx context.Context, now time.Time) (next time.Duration) {
	e := &f.expiry
	if left := time.Until(e.due); left > 0 {
		return left
	}
	began := time.Now()
	rest, err := e.piece(ctx, f.store, now)
	f.expiring.Note(ctx, err)
	if err != nil {
		rest = every
	}
	rest = max(rest, (expireShare-1)*time.Since(began))
	e.due = time.Now().Add(rest)
	return rest
}

func (e *expiry) piece(ctx context.Context, store stores, now time.Time) (rest time.Duration, err error) {
	var walked apidb.Walked
	switch e.stage {
	case stageJobs:
		walked, err = store.statuses.ExpireJobs(ctx, now, e.ages, e.after, expireRows)
	case stageDeleted:
		if e.deleted > 0 {
			walked, err = store.statuses.ForgetDeleted(ctx, now, e.deleted, e.after, expireRows)
		}
	case stageBatches:
		walked, err = store.statuses.ExpireBatches(ctx, now, e.ages, e.after, expireRows)
	case stageLogs:
		walked, err = store.logs.Expire(ctx, now, grace, e.after, expireRows)
	case stageAudit:
		if e.audit > 0 {
			walked.More, err = store.auditLog.DeleteOld(ctx, e.audit, expireRows)
		}
	case stageEvents:
		if e.events > 0 {
			walked, err = store.waits.Expire(ctx, now, e.events, e.after, expireRows)
		}
	case stageRejected:
		if e.rejected > 0 {
			walked.More, err = store.rejected.DeleteOld(ctx, e.rejected, expireRows)
		}
	}
	if err != nil {
		return 0, err
	}
	if e.after = walked.Last; walked.More {
		return 0, nil
	}
	if e.after, e.stage = uuid.Nil, (e.stage+1)%stages; e.stage != stageJobs {
		return 0, nil
	}
	return expireRest, nil
}
