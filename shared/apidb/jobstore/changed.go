package jobstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/shelves"
	"github.com/jobweaver/jobweaver/shared/apidb/joblist"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Changed is a job as a list shows it, and its recent states. After holds only the jobs that FindAfter looked for.
type Changed struct {
	Job
	Were     []jobstate.Status // the states that it has left lately
	Payloads []string          // what FindPayloads has looked for and its payload has

	EndedAt *time.Time // its end, also one that a retry has undone lately; nil: it has not ended
}

// lately is how long a job counts as having been in a state. It is longer than a notification of a change takes.
const lately = 10 * time.Second

// ChangedJobs reads jobs of all owners, as a list shows them. later are the jobs that did not fit.
func (s *Store) ChangedJobs(ctx context.Context, ids []uuid.UUID) (changed []Changed, later []uuid.UUID, err error) {
	rows, err := s.q.JobsListed(ctx, gen.JobsListedParams{JobIDs: ids, MaxBytes: apidb.MaxListBytes})
	if err != nil {
		return nil, nil, apidb.Classify("read changed jobs", err)
	}
	jobs := make([]Job, 0, len(rows))
	for _, row := range rows {
		if row.Version > 0 && row.Snapshot == "" {
			later = append(later, row.JobID)
			continue
		}
		job, err := newJob(row)
		if err != nil {
			return nil, nil, err
		}
		jobs = append(jobs, job)
	}
	if err := s.findBlocks(ctx, jobs, maxListedAfter); err != nil {
		return nil, nil, apidb.Classify("find what jobs wait for", err)
	}
	for _, job := range jobs {
		were, endedAt := statusesBefore(&job), endOf(&job)
		job.Snapshot.History = nil
		changed = append(changed, Changed{Job: job, Were: were, EndedAt: endedAt})
	}
	return changed, later, nil
}

// FindAfter finds which of the jobs asked the changed ones depend on: a job can name ten thousand, and filters name
// a few.
func (s *Store) FindAfter(ctx context.Context, changed []Changed, asked []uuid.UUID) error {
	at := map[uuid.UUID]*Changed{}
	var ids []uuid.UUID
	for i := range changed {
		if job := &changed[i]; job.HasAfter {
			at[job.JobID] = job
			ids = append(ids, job.JobID)
		}
	}
	if len(ids) == 0 || len(asked) == 0 {
		return nil
	}
	rows, err := s.q.JobsNaming(ctx, gen.JobsNamingParams{JobIDs: ids, AfterIDs: asked})
	for _, row := range rows {
		at[row.JobID].After = append(at[row.JobID].After, row.AfterID)
	}
	return apidb.Classify("find what changed jobs come after", err)
}

// FindPayloads finds which of the asked values the payloads of the changed jobs have. After an error some are not
// found.
func (s *Store) FindPayloads(ctx context.Context, changed []Changed, asked []string) error {
	ids := make([]uuid.UUID, len(changed))
	for i := range changed {
		ids[i] = changed[i].JobID
	}
	for _, text := range asked {
		c, _ := jobspec.ReadPayloadFilter(text)
		meet, err := s.q.JobsWithPayload(ctx, gen.JobsWithPayloadParams{JobIDs: ids, Path: c.Path, Wanted: c.Value})
		if err != nil {
			return apidb.Classify("look into the payloads of changed jobs", err)
		}
		for i := range changed {
			if slices.Contains(meet, changed[i].JobID) {
				changed[i].Payloads = append(changed[i].Payloads, text)
			}
		}
	}
	return nil
}

// mostUnblocked bounds how many of an owner's jobs with dependencies are looked at after some of its jobs have ended.
const mostUnblocked = 300

// UnblockedJobs finds jobs that may wait for fewer jobs now that others have ended: not all of them, but the followed
// ones, the next ones of ordering keys, and jobs accepted soon after their dependencies. The other jobs show a change
// only when they are ready.
func (s *Store) UnblockedJobs(ctx context.Context, ended, followed []uuid.UUID) ([]uuid.UUID, error) {
	ids, err := s.q.JobsUnblocked(ctx, gen.JobsUnblockedParams{
		EndedIDs: ended, FollowedIDs: followed, MostSeen: mostUnblocked, MostLookedAt: maxListedAfter,
	})
	return ids, apidb.Classify("find jobs that wait for less", err)
}

// statusesBefore returns the states that a job has left in its latest transitions. QUEUED is not notified by itself:
// the API shows it as PENDING.
func statusesBefore(job *Job) (were []jobstate.Status) {
	moves := job.Snapshot.History
	for i := len(moves) - 1; i >= 0; i-- {
		if moves[i].At.Before(moves[len(moves)-1].At.Add(-lately)) {
			break
		}
		switch from := jobstate.Status(moves[i].From); {
		case from == jobstate.Queued:
			were = append(were, jobstate.Queued, jobstate.Pending)
		case from != "":
			were = append(were, from)
		}
	}
	return shelves.Once(were)
}

// endOf returns the end of a job that has ended, or had ended until lately.
func endOf(job *Job) *time.Time {
	if job.Status.Terminal() {
		return &job.UpdatedAt
	}
	moves := job.Snapshot.History
	for i := len(moves) - 1; i > 0 && !moves[i].At.Before(moves[len(moves)-1].At.Add(-lately)); i-- {
		if jobstate.Status(moves[i].From).Terminal() {
			return &moves[i-1].At
		}
	}
	return nil
}

// Fits reports whether an owner's list with the filter shows a job, or showed it until lately, so that a client that
// follows a list of one status sees a job leave it. The page limits of the filter are ignored.
func (f *Filter) Fits(owner apidb.Owner, job *Changed) bool {
	owner, some := owner.Only(f.OwnerID)
	return some && owner.Sees(job.OwnerID) &&
		f.fitsStatus(job) && f.fitsKeys(job) && f.fitsText(job) && f.fitsSearch(job) &&
		within(job.CreatedAt, f.Since, f.Until) &&
		(f.EndedSince == nil && f.EndedUntil == nil || job.EndedAt != nil && within(*job.EndedAt, f.EndedSince, f.EndedUntil))
}

// within reports whether an instant is not before since and before until; nil excludes nothing.
func within(at time.Time, since, until *time.Time) bool {
	return (since == nil || !at.Before(*since)) && (until == nil || at.Before(*until))
}

func (f *Filter) fitsStatus(job *Changed) bool {
	return len(f.Status) == 0 || slices.Contains(f.Status, job.Status) ||
		slices.ContainsFunc(f.Status, func(s jobstate.Status) bool { return slices.Contains(job.Were, s) })
}

func (f *Filter) fitsKeys(job *Changed) bool {
	return (f.TraceID == nil || *f.TraceID == job.TraceID) && askedFor(f.OrderingKey, job.OrderingKey) &&
		askedFor(f.IdempotencyKey, job.IdempotencyKey) && (f.After == nil || slices.Contains(job.After, *f.After)) &&
		(f.BatchID == nil || job.BatchID != uuid.Nil && *f.BatchID == job.BatchID) &&
		(f.FanOutID == nil || job.Element != nil && *f.FanOutID == job.Element.FanOut) &&
		(f.Payload == "" || slices.Contains(job.Payloads, f.Payload))
}

func (f *Filter) fitsText(job *Changed) bool {
	return askedFor(f.JobType, job.JobType) && askedFor(f.Queue, job.Queue) &&
		askedFor(f.ErrorCode, lastError(job).ErrorCode) && (!f.NoErrorCode || lastError(job).ErrorCode == "") &&
		(f.Tag == "" || slices.ContainsFunc(job.Tags, f.fitsTag))
}

func (f *Filter) fitsTag(tag string) bool {
	if prefix, is := f.TagPrefix(); is {
		return strings.HasPrefix(tag, prefix)
	}
	return tag == f.Tag
}

// fitsSearch checks all fields in which a search may find a text, also where a list would use only the best index.
func (f *Filter) fitsSearch(job *Changed) bool {
	if f.Search == "" || f.Search == job.IdempotencyKey {
		return true
	}
	if id, ok := joblist.AsID(f.Search); ok {
		return id == job.JobID || id == job.TraceID
	}
	failed, search := lastError(job), strings.ToLower(f.Search)
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), search) }
	return f.Search == failed.ErrorCode || slices.ContainsFunc(job.Tags, has) || has(failed.Message)
}

func lastError(job *Changed) jobevent.Error {
	if job.Snapshot.LastError == nil {
		return jobevent.Error{}
	}
	return *job.Snapshot.LastError
}

// askedFor reports whether a value matches a filter; an empty filter matches any value.
func askedFor(asked, is string) bool { return asked == "" || asked == is }
