package jobs

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// groupsBody is the response with the FAILED jobs by type and error code.
type groupsBody struct {
	At         time.Time   `json:"at"`
	HoursSince time.Time   `json:"hoursSince"`
	Jobs       int64       `json:"jobs"` // of all matching groups, also of those beyond the limit
	Total      int         `json:"total"`
	Complete   bool        `json:"complete"`
	Groups     []groupBody `json:"groups"`
}

type groupBody struct {
	JobType       string    `json:"jobType"`
	ErrorCode     *string   `json:"errorCode"`
	Jobs          int64     `json:"jobs"`
	New           bool      `json:"new"`
	FirstFailedAt time.Time `json:"firstFailedAt"`
	LastFailedAt  time.Time `json:"lastFailedAt"`
	Hours         [24]int64 `json:"hours"`
	DayBefore     int64     `json:"dayBefore"`
	Example       *example  `json:"example"`
}

// example is the job of a group that failed last, or another one if that one is FAILED no longer.
type example struct {
	JobID   uuid.UUID `json:"jobId"`
	Message string    `json:"message"`
}

// ListGroups is GET /api/jobs/dead/groups.
func (a *API) ListGroups(c *gin.Context) error {
	q := edge.NewQuery(c)
	if q.Values.Has("noErrorCode") && q.Values.Has("errorCode") {
		q.Bad("noErrorCode", "and errorCode exclude each other")
	}
	filter := apibody.Filter{
		JobType: q.Checked("type", apibody.CheckJobType), ErrorCode: q.One("errorCode"), NoErrorCode: q.Yes("noErrorCode"),
		OwnerID: q.Checked("ownerId", apibody.CheckOwner), EndedSince: q.Instant("since"),
	}
	limit := q.Integer("limit", edge.DefaultLimit, 1, edge.MaxLimit)
	if err := q.Close("type", "errorCode", "noErrorCode", "ownerId", "since", "limit"); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	owner, some := edge.OwnerOf(c).Only(filter.OwnerID)
	found := statstore.FailureGroups{At: time.Now(), Complete: true}
	if some {
		var err error
		if found, err = a.Stats.FailureGroups(ctx, owner); err != nil {
			return err
		}
	}
	body := newGroups(&found, filter, limit)
	if err := a.addExamples(ctx, owner, body.Groups); err != nil {
		return err
	}
	return a.Audit.Show(c, body)
}

// newGroups returns the groups that match, up to the limit.
func newGroups(found *statstore.FailureGroups, filter apibody.Filter, limit int) groupsBody {
	body := groupsBody{
		At: found.At.UTC(), HoursSince: statstore.HoursSince(found.At), Complete: found.Complete, Groups: []groupBody{},
	}
	for i := range found.Groups {
		g := &found.Groups[i]
		if filter.JobType != "" && g.JobType != filter.JobType || filter.ErrorCode != "" && g.ErrorCode != filter.ErrorCode ||
			filter.NoErrorCode && g.ErrorCode != "" || filter.EndedSince != nil && g.LastAt.Before(*filter.EndedSince) {
			continue
		}
		body.Total++
		if body.Jobs += g.Jobs; len(body.Groups) == limit {
			continue
		}
		body.Groups = append(body.Groups, groupBody{
			JobType: g.JobType, ErrorCode: jobview.Given(g.ErrorCode), Jobs: g.Jobs, New: g.IsNew(found.At),
			FirstFailedAt: g.FirstAt, LastFailedAt: g.LastAt, Hours: g.Hours, DayBefore: g.DayBefore,
			Example: &example{JobID: g.LastID},
		})
	}
	return body
}

// searchFor bounds how long other examples are searched for the groups whose last job was retried or deleted.
const searchFor = 50 * time.Millisecond

// addExamples completes the example of each group with its message.
func (a *API) addExamples(ctx context.Context, owner apidb.Owner, groups []groupBody) error {
	ids := make([]uuid.UUID, len(groups))
	for i := range groups {
		ids[i] = groups[i].Example.JobID
	}
	last, _, err := a.Store.ChangedJobs(ctx, ids)
	if err != nil {
		return err
	}
	byID := map[uuid.UUID]*jobstore.Job{}
	for i := range last {
		byID[last[i].JobID] = &last[i].Job
	}
	began := time.Now()
	for i := range groups {
		g := &groups[i]
		job := byID[g.Example.JobID]
		g.Example = nil
		if (job == nil || !g.has(job)) && time.Since(began) < searchFor {
			if job, err = a.newestOf(ctx, owner, g); err != nil {
				return err
			}
		}
		if job == nil || !g.has(job) {
			continue
		}
		a.Open(ctx, job)
		g.Example = &example{JobID: job.JobID}
		if job.Snapshot.LastError != nil {
			g.Example.Message = job.Snapshot.LastError.Message
		}
	}
	return nil
}

// codeLength is how many characters of a code are in the column error_code, by which jobs are grouped.
const codeLength = 255

func (g *groupBody) has(job *jobstore.Job) bool {
	code := ""
	if job.Snapshot.LastError != nil {
		code = job.Snapshot.LastError.ErrorCode
	}
	is := code == g.code() || utf8.RuneCountInString(g.code()) == codeLength && strings.HasPrefix(code, g.code())
	return is && job.Status == jobstate.Failed && job.JobType == g.JobType
}

func (g *groupBody) code() string {
	if g.ErrorCode == nil {
		return ""
	}
	return *g.ErrorCode
}

// newestOf returns the job of a group that was accepted last; nil if it is not among the newest FAILED jobs.
func (a *API) newestOf(ctx context.Context, owner apidb.Owner, g *groupBody) (*jobstore.Job, error) {
	jobs, _, err := a.Store.ListJobs(ctx, owner, jobstore.Filter{Limit: 1, Filter: apibody.Filter{
		Status: []jobstate.Status{jobstate.Failed}, JobType: g.JobType, ErrorCode: g.code(), NoErrorCode: g.ErrorCode == nil,
	}})
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	return &jobs[0], nil
}
