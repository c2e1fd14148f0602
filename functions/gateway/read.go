package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

const (
	maxWait      = time.Minute
	defaultLimit = 50
	maxLimit     = 200
	shownLines   = 200 // of a job's log, beside the job

	maxPageBytes = 8 << 20 // of outputs, each of which is far smaller
)

// get is GET /api/jobs/{jobId}; with ?wait= it holds the answer until the job has ended.
func (f *Function) get(c *gin.Context) error {
	id, err := jobID(c)
	if err != nil {
		return err
	}
	q := query{values: c.Request.URL.Query()}
	wait := q.wait("wait")
	if err := q.close("wait"); err != nil {
		return err
	}
	job, err := f.job(c, id)
	if err != nil {
		return err
	}
	if wait > 0 && !job.Status.Terminal() {
		release, err := f.door.hold(c)
		if err != nil {
			return err
		}
		defer release()
		ctx, cancel := context.WithTimeout(c.Request.Context(), wait)
		f.endings.wait(ctx, id)
		cancel()
		if err := f.still(c, access.Read); err != nil {
			return err
		}
		if job, err = f.job(c, id); err != nil {
			return err
		}
	}
	lines, err := f.lines(c, id, 0)
	if err != nil {
		return err
	}
	lines = lines[max(0, len(lines)-shownLines):]
	f.openFull(c.Request.Context(), &job, lines)
	c.JSON(http.StatusOK, newFull(job, lines))
	return nil
}

func (f *Function) job(c *gin.Context, id uuid.UUID) (apidb.Job, error) {
	ctx, cancel := patience(c)
	defer cancel()
	job, err := f.store.Job(ctx, whose(c), id)
	if err != nil {
		return job, ofJob{id, err}
	}
	return job, nil
}

func (f *Function) lines(c *gin.Context, id uuid.UUID, attempt int) ([]apidb.LogLine, error) {
	ctx, cancel := patience(c)
	defer cancel()
	return f.store.Logs(ctx, whose(c), id, attempt)
}

type logsBody struct {
	JobID uuid.UUID `json:"jobId"`
	Logs  []logLine `json:"logs"`

	Sealed []string `json:"sealed,omitempty"` // that cannot be shown
}

// logs is GET /api/jobs/{jobId}/logs.
func (f *Function) logs(c *gin.Context) error {
	id, err := jobID(c)
	if err != nil {
		return err
	}
	q := query{values: c.Request.URL.Query()}
	attempt := q.integer("attempt", 0, 1, 1<<31-1)
	if err := q.close("attempt"); err != nil {
		return err
	}
	if _, err := f.job(c, id); err != nil {
		return err
	}
	lines, err := f.lines(c, id, attempt)
	if err != nil {
		return err
	}
	sealed := f.openLines(c.Request.Context(), id, lines)
	c.JSON(http.StatusOK, logsBody{JobID: id, Logs: newLogs(lines), Sealed: sealed})
	return nil
}

type listBody struct {
	Jobs       []jobview.Summary `json:"jobs"`
	NextCursor *string           `json:"nextCursor"`
}

// list is GET /api/jobs: pages by key, newest first.
func (f *Function) list(c *gin.Context) error {
	q := query{values: c.Request.URL.Query()}
	filter := listFilter(&q)
	filter.Status = jobstate.Status(q.one("status"))
	if filter.Status != "" && !filter.Status.Valid() {
		q.bad("status", "is not a state of a job")
	}
	if err := q.close(append(listParameters, "status")...); err != nil {
		return err
	}
	ctx, cancel := patience(c)
	defer cancel()
	body, err := f.jobPage(ctx, whose(c), filter)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, body)
	return nil
}

var listParameters = []string{"type", "queue", "tag", "orderingKey", "since", "until", "cursor", "limit"}

func listFilter(q *query) apidb.Filter {
	return apidb.Filter{
		JobType: q.one("type"), Queue: q.one("queue"), Tag: q.one("tag"), OrderingKey: q.one("orderingKey"),
		Since: q.instant("since"), Until: q.instant("until"), Before: q.cursor("cursor"),
		Limit: q.integer("limit", defaultLimit, 1, maxLimit),
	}
}

func (f *Function) jobPage(ctx context.Context, owner apidb.Owner, filter apidb.Filter) (listBody, error) {
	jobs, more, err := f.store.ListJobs(ctx, owner, filter)
	if err != nil {
		return listBody{}, err
	}
	size := 0
	for i := range jobs {
		if size += len(jobs[i].Snapshot.Output); size > maxPageBytes {
			jobs, more = jobs[:i], true
			break
		}
	}
	body := listBody{Jobs: make([]jobview.Summary, len(jobs))}
	for i := range jobs {
		f.openJob(ctx, &jobs[i])
		body.Jobs[i] = jobview.New(jobs[i])
	}
	if more {
		cursor := jobs[len(jobs)-1].JobID.String()
		body.NextCursor = &cursor
	}
	return body, nil
}
