package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

const (
	defaultLimit = 50
	maxLimit     = 200
	shownLines   = 200 // of a job's log, beside the job

	// What a log has in one answer, about: the last of it beside the job, and a page of it by itself.
	shownLogBytes, pageLogBytes = 256 << 10, 1 << 20
)

// get is GET /api/jobs/{jobId}; with a wait it holds the answer until the job has ended.
func (f *Function) get(c *gin.Context) error {
	id, err := jobID(c)
	if err != nil {
		return err
	}
	q := edge.Query{Values: c.Request.URL.Query()}
	wait := waitingOf(c, &q)
	if err := q.Close("wait"); err != nil {
		return err
	}
	job, err := f.job(c, id)
	if err != nil {
		return err
	}
	wait.applied(c)
	if wait.Duration > 0 && !job.Status.Terminal() {
		job = jobstore.Job{} //nolint:wastedassign // its payload and output need not stay in memory meanwhile
		release, err := f.awaitEnd(c, id, wait)
		if err != nil {
			return err
		}
		defer release()
		if job, err = f.job(c, id); err != nil {
			return err
		}
	}
	return f.showJob(c, job)
}

// showJob answers with a job and all that is known of it.
func (f *Function) showJob(c *gin.Context, job jobstore.Job) error {
	lines, _, err := f.lines(c, job.JobID, logstore.Filter{MaxBytes: shownLogBytes})
	if err != nil {
		return err
	}
	lines = lines[max(0, len(lines)-shownLines):]
	f.openFull(c.Request.Context(), &job, lines)
	body, err := json.Marshal(newFull(job, lines))
	if err != nil {
		return fmt.Errorf("write job: %w", err)
	}
	if err := f.enterReading(c); err != nil {
		return err
	}
	edge.AnswerTagged(c, edge.JobTag(job.Version, body), jsonType, body)
	return nil
}

func (f *Function) job(c *gin.Context, id uuid.UUID) (jobstore.Job, error) {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	job, err := f.store.jobs.Job(ctx, edge.OwnerOf(c), id)
	if err == nil {
		err = edge.LoadOf(c).Take(c, int64(jobSize(&job)))
	}
	if err != nil {
		return job, edge.OfJob(id, err)
	}
	return job, nil
}

func (f *Function) lines(c *gin.Context, id uuid.UUID, filter logstore.Filter) (
	lines []logstore.Line, next *logstore.Place, err error,
) {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	if lines, next, err = f.store.logs.List(ctx, edge.OwnerOf(c), id, filter); err != nil {
		return nil, nil, err
	}
	return lines, next, edge.LoadOf(c).Take(c, sizeOf(lines, func(l *logstore.Line) int { return len(l.Text) }))
}

// sizeOf is how much memory an answer needs for each of some things, beside a little.
func sizeOf[T any](all []T, size func(*T) int) (bytes int64) {
	for i := range all {
		bytes += int64(size(&all[i]))
	}
	return bytes
}

func jobSize(job *jobstore.Job) int { return len(job.Payload) + len(job.Snapshot.Output) }

type logsBody struct {
	JobID      uuid.UUID `json:"jobId"`
	Logs       []logLine `json:"logs"`
	NextCursor *string   `json:"nextCursor"`

	Sealed []string `json:"sealed,omitempty"` // that cannot be shown
}

// logs is GET /api/jobs/{jobId}/logs: pages from the end.
func (f *Function) logs(c *gin.Context) error {
	id, err := jobID(c)
	if err != nil {
		return err
	}
	q := edge.Query{Values: c.Request.URL.Query()}
	filter := logstore.Filter{
		Attempt: q.Integer("attempt", 0, 1, 1<<31-1), Before: q.LogPlace("cursor"), MaxBytes: pageLogBytes,
	}
	if err := q.Close("attempt", "cursor"); err != nil {
		return err
	}
	if _, err := f.job(c, id); err != nil {
		return err
	}
	lines, next, err := f.lines(c, id, filter)
	if err != nil {
		return err
	}
	body := logsBody{JobID: id, Sealed: f.openLines(c.Request.Context(), id, lines), Logs: newLogs(lines)}
	if next != nil {
		cursor := fmt.Sprintf("%d.%d", next.Attempt, next.Line)
		body.NextCursor = &cursor
	}
	return f.show(c, body)
}

type listBody struct {
	Jobs       []jobview.Summary `json:"jobs"`
	NextCursor *string           `json:"nextCursor"`
}

// list is GET /api/jobs: pages by key, newest first.
func (f *Function) list(c *gin.Context) error {
	q := edge.Query{Values: c.Request.URL.Query()}
	filter := listFilter(&q)
	filter.Status = q.Statuses("status")
	if err := q.Close(append(slices.Clip(listParameters), "status")...); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	body, err := f.jobPage(ctx, c, filter)
	if err != nil {
		return err
	}
	return f.show(c, body)
}

// listFilters are the parameters beside status that choose jobs of lists and streams, listParameters all of a list.
var (
	listFilters = []string{
		"type", "queue", "tag", "orderingKey", "errorCode", "noErrorCode", "traceId", "idempotencyKey", "after", "q",
		"ownerId", "since", "until",
	}
	listParameters = append(slices.Clip(listFilters), "cursor", "limit")
)

func listFilter(q *edge.Query) jobstore.Filter {
	if q.Values.Has("noErrorCode") && q.Values.Has("errorCode") {
		q.Bad("noErrorCode", "and errorCode exclude each other")
	}
	return jobstore.Filter{
		JobType: q.Checked("type", jobspec.CheckJobType), Queue: q.One("queue"), Tag: q.One("tag"),
		OrderingKey: q.One("orderingKey"), ErrorCode: q.One("errorCode"), NoErrorCode: q.Yes("noErrorCode"),
		TraceID: q.UUID("traceId"), After: q.UUID("after"),
		IdempotencyKey: q.One("idempotencyKey"), Search: q.Label("q"), OwnerID: q.Checked("ownerId", jobspec.CheckOwner),
		Since: q.Instant("since"), Until: q.Instant("until"), Before: q.Cursor("cursor"),
		Limit: q.Integer("limit", defaultLimit, 1, maxLimit),
	}
}

func (f *Function) jobPage(ctx context.Context, c *gin.Context, filter jobstore.Filter) (listBody, error) {
	jobs, next, err := f.store.jobs.ListJobs(ctx, edge.OwnerOf(c), filter)
	if err != nil {
		return listBody{}, err
	}
	if err := edge.LoadOf(c).Take(c, sizeOf(jobs, jobSize)); err != nil {
		return listBody{}, err
	}
	body := listBody{Jobs: make([]jobview.Summary, len(jobs))}
	for i := range jobs {
		f.openJob(ctx, &jobs[i])
		body.Jobs[i] = jobview.New(jobs[i])
	}
	if next != uuid.Nil {
		cursor := next.String()
		body.NextCursor = &cursor
	}
	return body, nil
}
