// Package afterrestore reconciles the databases of the API and the scheduler after they were restored from backups of
// different moments. Of two versions of a job the higher one counts, in either database, and a job that only one of
// them has is copied to the other. The workers' database needs no repair, because the scheduler asks the workers about
// each attempt anyway.
package afterrestore

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/recoverystore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
)

const (
	// pageOf is how many jobs of each database are compared at once.
	pageOf = 1000
	// ingestOf is how many jobs are ingested in one transaction, adoptOf how many are adopted with their payloads: on a
	// slow server a whole page would exceed the time limit of the scheduler's transactions.
	ingestOf = 100
	adoptOf  = 100
	// stillOpen bounds how much earlier than the newest job in the API's database a missing job may have been accepted
	// without having been deleted: its transaction had not committed yet.
	stillOpen = time.Minute
)

// Report counts the repairs.
type Report struct {
	Jobs int // that were compared

	ToScheduler int64 // jobs that the scheduler has taken over, because the API has a higher version
	ToAPI       int64 // ended jobs that the API has taken over, because the scheduler has a higher version
	BackInAPI   int64 // jobs that only the scheduler had
	Cancelled   int64 // those of them that the API must have deleted, because it has newer jobs
	AskedAgain  int64 // jobs whose status the API has dropped, because it contradicts the scheduler
	Numbered    int64 // jobs whose next command gets a higher number
	Controls    int64 // pauses and limits that differed
}

// Run compares the two databases page by page. It can be run again at any time.
func Run(ctx context.Context, api *apidb.Store, scheduler *schedulerdb.Store) (Report, error) {
	statuses := statusstore.New(api)
	r := run{api: recoverystore.New(api), scheduler: scheduler.Restored(), ingest: scheduler.Ingest,
		forget: statuses.ForgetJobs, apply: statuses.ApplyStatuses}
	var err error
	if r.knownUntil, err = r.api.KnownUntil(ctx); err != nil {
		return r.Report, err
	}
	// Ended jobs first: with an ordering key, the job that had the turn before must have ended before another one has
	// it.
	for _, pass := range []func(context.Context, page) error{r.ended, r.others} {
		if err := r.walk(ctx, pass); err != nil {
			return r.Report, err
		}
	}
	kept, err := r.scheduler.Controls(ctx)
	if err != nil {
		return r.Report, err
	}
	r.Controls, err = r.api.Controls(ctx, kept, r.lastOrder)
	return r.Report, err
}

// page is a range of ids, with the jobs of both databases.
type page struct {
	api       map[uuid.UUID]recoverystore.RestoredJob
	scheduler map[uuid.UUID]schedulerdb.RestoredJob
}

func (r *run) walk(ctx context.Context, pass func(context.Context, page) error) error {
	for after, more := uuid.Nil, true; more; {
		ours, err := r.api.Jobs(ctx, after, pageOf)
		if err != nil {
			return err
		}
		theirs, err := r.scheduler.Jobs(ctx, after, pageOf)
		if err != nil {
			return err
		}
		// The page ends where the shorter of the two lists ends.
		last := uuid.Max
		if len(ours) == pageOf {
			last = ours[pageOf-1].JobID
		}
		if len(theirs) == pageOf && bytes.Compare(theirs[pageOf-1].JobID[:], last[:]) < 0 {
			last = theirs[pageOf-1].JobID
		}
		p := page{map[uuid.UUID]recoverystore.RestoredJob{}, map[uuid.UUID]schedulerdb.RestoredJob{}}
		for _, job := range ours {
			if bytes.Compare(job.JobID[:], last[:]) <= 0 {
				p.api[job.JobID] = job
			}
		}
		for _, job := range theirs {
			if bytes.Compare(job.JobID[:], last[:]) <= 0 {
				p.scheduler[job.JobID] = job
			}
		}
		if err := pass(ctx, p); err != nil {
			return fmt.Errorf("jobs after %s: %w", after, err)
		}
		after, more = last, last != uuid.Max
	}
	return nil
}

func hasEnded(job recoverystore.RestoredJob) bool { return jobstate.Status(job.Status).Terminal() }
