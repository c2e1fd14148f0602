package jobstore

import (
	"context"
	"encoding/json"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json" // three times as fast as encoding/json
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/rowjson"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// Job returns one of the owner's jobs, or ErrNoJob.
func (s *Store) Job(ctx context.Context, owner apidb.Owner, id uuid.UUID) (Job, error) {
	found, err := s.q.JobByID(ctx, gen.JobByIDParams{JobID: id, Owner: owner.Filter()})
	if err != nil {
		return Job{}, apidb.Classify("get job", err)
	}
	job, err := jobOf(found.Job)
	if err != nil {
		return Job{}, err
	}
	if found.RunAgainAs != uuid.Nil {
		job.RunAgainAs = &found.RunAgainAs
	}
	page := []Job{job}
	err = s.findBlocks(ctx, page, jobspec.MaxAfter)
	return page[0], apidb.Classify("find what a job waits for", err)
}

// Request returns the request of one of the owner's jobs, with the defaults at its acceptance, and the number of its
// last command. The payload is returned as stored: sealed, if payloads are sealed. The error is ErrNoJob if there is
// no such job.
func (s *Store) Request(
	ctx context.Context, owner apidb.Owner, id uuid.UUID,
) (req jobspec.Request, command int, err error) {
	row, err := s.q.JobByID(ctx, gen.JobByIDParams{JobID: id, Owner: owner.Filter()})
	if err != nil {
		return req, 0, apidb.Classify("get what a job asked for", err)
	}
	req, err = RequestOf(row.Job)
	return req, int(row.Job.CommandSeq), err
}

// Filter selects the jobs of a page. A zero value excludes none.
type Filter struct {
	apibody.Filter
	Event  Event     // the job that it became
	Before uuid.UUID // only jobs after this one in the list, that is older jobs
	Skip   int       // how many of the newest remaining jobs to skip
	Limit  int
}

// ListJobs returns the owner's newest matching jobs, without payloads and history. next is the job after which the
// list continues; uuid.Nil: it ends here. A page may be shorter than the limit if its jobs are large, or if many jobs
// had to be looked at.
func (s *Store) ListJobs(ctx context.Context, owner apidb.Owner, f Filter) (jobs []Job, next uuid.UUID, err error) {
	rows, next, err := s.list(ctx, owner, f)
	if err != nil {
		return nil, next, apidb.Classify("list jobs", err)
	}
	for i, row := range rows {
		if i == f.Limit || row.Version > 0 && row.Snapshot == "" {
			next = rows[i-1].JobID
			break
		}
		job, err := newListed(row)
		if err == nil && row.Snapshot != "" {
			err = readSnapshot(row.JobID, row.Snapshot, &listed{Status: &job.Snapshot})
		}
		if err != nil {
			return nil, next, err
		}
		jobs = append(jobs, job)
	}
	if err := s.findBlocks(ctx, jobs, maxListedAfter); err != nil {
		return nil, next, apidb.Classify("find what jobs wait for", err)
	}
	return jobs, next, nil
}

// listed is a job's status without its history.
type listed struct {
	*jobevent.Status
	History skipped `json:"history"`
}

// skipped ignores a JSON value.
type skipped struct{}

func (skipped) UnmarshalJSONFrom(from *jsontext.Decoder) error { return from.SkipValue() }

// ReadSnapshot reads the status of a job as JobsApplyStatus stored it.
func ReadSnapshot(id uuid.UUID, snapshot string) (status jobevent.Status, err error) {
	err = readSnapshot(id, snapshot, &status)
	return status, err
}

func readSnapshot(id uuid.UUID, snapshot string, into any) error {
	if err := jsonv2.Unmarshal([]byte(snapshot), into, rowjson.AnyNames); err != nil {
		return fmt.Errorf("read snapshot of job %s: %w", id, err)
	}
	return nil
}

// Ended returns those of the jobs that have ended or are deleted. The caller has checked their owner.
func (s *Store) Ended(ctx context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
	ended, err := s.q.JobsEnded(ctx, ids)
	return ended, apidb.Classify("find ended jobs", err)
}

func newJob(row gen.JobsListedRow) (Job, error) {
	job, err := newListed(row)
	if err == nil && row.Snapshot != "" {
		err = readSnapshot(row.JobID, row.Snapshot, &job.Snapshot)
	}
	return job, err
}

// EndedJob reads a job as JobsApplyStatus stored it in a delivery.
func EndedJob(row json.RawMessage, snapshot string) (Job, error) {
	var list gen.JobsListedRow
	if err := json.Unmarshal(row, &list); err != nil {
		return Job{}, fmt.Errorf("read a job as it ended: %w", err)
	}
	list.Snapshot = snapshot
	return newJob(list)
}

// TagsOf returns the tags of those jobs that have tags.
func (s *Store) TagsOf(ctx context.Context, jobs []uuid.UUID) (map[uuid.UUID][]string, error) {
	rows, err := s.q.TagsOf(ctx, jobs)
	if err != nil {
		return nil, apidb.Classify("read tags", err)
	}
	tags := make(map[uuid.UUID][]string, len(rows))
	for _, row := range rows {
		tags[row.JobID] = row.Tags
	}
	return tags, nil
}
