// Package afterrestore puts right in what the API's and the scheduler's databases differ once they were restored from
// backups of different moments. Of two words on a job the newer one counts, wherever it is, and what only one of the
// two has the other gets. The workers' database needs none of it: the protocol asks it about each attempt anyway.
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
	// pageOf is how many jobs of each database are looked at together.
	pageOf = 1000
	// ingestOf is how many jobs are ingested in one transaction, adoptOf how many are adopted with their payloads: on a
	// slow server a page would take longer than a transaction of the scheduler may.
	ingestOf = 100
	adoptOf  = 100
	// stillOpen is how long before the latest instant that the API knows of a job may have been accepted that it does
	// not know: whoever accepted it had not committed.
	stillOpen = time.Minute
)

// Report is what was put right.
type Report struct {
	Jobs int // that were looked at

	ToScheduler int64 // jobs of which the API knows more: the scheduler has taken them over
	ToAPI       int64 // ended jobs of which the scheduler knows more: the API has taken them over
	BackInAPI   int64 // jobs that only the scheduler had
	Cancelled   int64 // of these those that the API must have deleted, since it knows what came later
	AskedAgain  int64 // jobs of which the API has forgotten what it had heard, as it cannot be
	Numbered    int64 // jobs whose next command gets a later number
	Controls    int64 // pauses and limits that differed
}

// Run compares the two, page by page, and can be run again at any time.
func Run(ctx context.Context, api *apidb.Store, scheduler *schedulerdb.Store) (Report, error) {
	statuses := statusstore.New(api)
	r := run{api: recoverystore.New(api), scheduler: scheduler.Restored(), ingest: scheduler.Ingest,
		forget: statuses.ForgetJobs, apply: statuses.ApplyStatuses}
	var err error
	if r.knownUntil, err = r.api.KnownUntil(ctx); err != nil {
		return r.Report, err
	}
	// What has ended first: who has its turn in an order must have had it given up by who had it before.
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

// page is a stretch of ids, with what each of the two has of it.
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
		// Both are known as far as the one that was cut off first.
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
