package gateway

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

const (
	maxScheduleBytes = jobspec.MaxJobBytes + 16<<10 // a job, and what stands around it
	shownTicks       = 5                            // that are to come
)

type scheduleBody struct {
	Name      string          `json:"name"`
	OwnerID   *string         `json:"ownerId"`
	Cron      string          `json:"cron"`
	TimeZone  string          `json:"timeZone"`
	Job       json.RawMessage `json:"job"`
	Overlap   string          `json:"overlap"`
	Missed    string          `json:"missed"`
	Paused    bool            `json:"paused"`
	StartAt   *time.Time      `json:"startAt"`
	EndAt     *time.Time      `json:"endAt"`
	NextAt    *time.Time      `json:"nextAt"`
	Upcoming  []time.Time     `json:"upcoming"`
	LastAt    *time.Time      `json:"lastAt"`
	LastJobID *uuid.UUID      `json:"lastJobId"`
	CreatedAt time.Time       `json:"createdAt"`
	UpdatedAt time.Time       `json:"updatedAt"`
	Sealed    []string        `json:"sealed,omitempty"` // that cannot be shown
}

func newScheduleBody(s schedulestore.Schedule) scheduleBody {
	body := scheduleBody{
		Name: s.Name, OwnerID: jobview.Given(s.OwnerID), Cron: s.Cron, TimeZone: s.TimeZone, Job: s.Job, Overlap: s.Overlap,
		Missed: s.Missed, Paused: s.Paused, StartAt: jobview.UTC(s.StartAt), EndAt: jobview.UTC(s.EndAt),
		Upcoming: jobview.List(s.Upcoming(shownTicks)), LastAt: jobview.UTC(s.LastAt), LastJobID: s.LastJobID,
		CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
	}
	for i, at := range body.Upcoming {
		body.Upcoming[i] = at.UTC()
	}
	if len(body.Upcoming) > 0 {
		body.NextAt = &body.Upcoming[0]
	}
	return body
}

// createSchedule is POST /api/schedules.
func (f *Function) createSchedule(c *gin.Context) error {
	asked, err := f.schedule(c)
	if err != nil {
		return err
	}
	if asked.Name == "" {
		return badSchedule("name", "is required")
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	if err := fires(asked); err != nil {
		return err
	}
	f.sealSchedule(&asked)
	if err := detail(c, "schedule/"+asked.Name, nil); err != nil {
		return err
	}
	made, err := f.store.schedules.Create(ctx, edge.OwnerOf(c), asked)
	if err != nil {
		return err
	}
	f.answerMade(c, made)
	return nil
}

func (f *Function) answerMade(c *gin.Context, made schedulestore.Schedule) {
	location := "/api/schedules/" + made.Name
	if made.OwnerID != "" {
		location += "?ownerId=" + url.QueryEscape(made.OwnerID)
	}
	c.Header("Location", location)
	c.JSON(http.StatusCreated, f.openSchedule(c.Request.Context(), made))
}

// putSchedule is PUT /api/schedules/{name}.
func (f *Function) putSchedule(c *gin.Context) error {
	key, err := scheduleKey(c)
	if err != nil {
		return err
	}
	asked, err := f.schedule(c)
	if err != nil {
		return err
	}
	switch {
	case asked.Name != "" && asked.Name != key.Name:
		return badSchedule("name", "must be that of the path")
	case key.OwnerID != nil && *key.OwnerID != edge.OwnerOf(c).Names(asked.Job.OwnerID):
		return badSchedule("job.ownerId", "must be that of the query")
	}
	asked.Name = key.Name
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	if err := fires(asked); err != nil {
		return err
	}
	f.sealSchedule(&asked)
	kept, created, err := f.store.schedules.Put(ctx, edge.OwnerOf(c), asked)
	if err != nil {
		return err
	}
	if created {
		f.answerMade(c, kept)
		return nil
	}
	c.JSON(http.StatusOK, f.openSchedule(c.Request.Context(), kept))
	return nil
}

// schedule reads a request's schedule.
func (f *Function) schedule(c *gin.Context) (jobspec.Schedule, error) {
	body, err := edge.ReadJSON(c, maxScheduleBytes)
	if err != nil {
		return jobspec.Schedule{}, err
	}
	asked, err := jobspec.DecodeSchedule(body)
	if err != nil {
		return asked, err
	}
	if err := asked.Validate(f.rules); err != nil {
		return asked, err
	}
	if err := asked.Belong(edge.OwnerOf(c).Names(asked.Job.OwnerID)); err != nil { // what is sealed has its owner's place
		return asked, err
	}
	return asked, jobspec.OfJob(f.payloads.judge(c.Request.Context())(&asked.Job))
}

// fires refuses a schedule that is over before it fires.
func fires(asked jobspec.Schedule) error {
	from := time.Now()
	if asked.StartAt != nil && asked.StartAt.After(from) {
		from = *asked.StartAt
	}
	spec, err := asked.Spec(from)
	if err != nil {
		return badSchedule("cron", err.Error())
	}
	if first := spec.Next(from.Add(-time.Nanosecond)); asked.EndAt != nil && first.After(*asked.EndAt) {
		return badSchedule("endAt", "is before the first time at which it would fire, "+first.Format(time.RFC3339))
	}
	return nil
}

func badSchedule(path, message string) error {
	return &apierror.Error{
		Code: apierror.InvalidJobRequest, Message: "invalid schedule: " + path + " " + message,
		Details: []apierror.Detail{{Path: path, Message: message}},
	}
}

// scheduleKey is the schedule that a path names, beside parameters of its own.
func scheduleKey(c *gin.Context) (schedulestore.Key, error) {
	q := edge.Query{Values: c.Request.URL.Query()}
	key := schedulestore.Key{Name: c.Param("name"), OwnerID: jobview.Given(q.Checked("ownerId", jobspec.CheckOwner))}
	if err := q.Close("ownerId"); err != nil {
		return key, err
	}
	if !jobspec.IsScheduleName(key.Name) {
		return key, schedulestore.ErrNone
	}
	return key, nil
}

type schedulesBody struct {
	Schedules  []scheduleBody `json:"schedules"`
	NextCursor *string        `json:"nextCursor"`
}

// listSchedules is GET /api/schedules: pages by key, in the order of names.
func (f *Function) listSchedules(c *gin.Context) error {
	q := edge.Query{Values: c.Request.URL.Query()}
	filter := schedulestore.Filter{
		OwnerID: jobview.Given(q.Checked("ownerId", jobspec.CheckOwner)), After: q.AfterSchedule("cursor"),
		Limit: q.Integer("limit", defaultLimit, 1, maxLimit),
	}
	if err := q.Close("ownerId", "cursor", "limit"); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	schedules, more, err := f.store.schedules.List(ctx, edge.OwnerOf(c), filter)
	if err == nil {
		err = edge.LoadOf(c).Take(c, sizeOf(schedules, func(s *schedulestore.Schedule) int { return len(s.Job) }))
	}
	if err != nil {
		return err
	}
	body := schedulesBody{Schedules: make([]scheduleBody, len(schedules))}
	for i, s := range schedules {
		body.Schedules[i] = f.openSchedule(c.Request.Context(), s)
	}
	if more {
		last := schedules[len(schedules)-1]
		cursor := last.Name + ":" + last.OwnerID
		body.NextCursor = &cursor
	}
	return f.show(c, body)
}

// getSchedule is GET /api/schedules/{name}.
func (f *Function) getSchedule(c *gin.Context) error {
	key, err := scheduleKey(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	s, err := f.store.schedules.Get(ctx, edge.OwnerOf(c), key)
	if err != nil {
		return err
	}
	return f.show(c, f.openSchedule(c.Request.Context(), s))
}

// deleteSchedule is DELETE /api/schedules/{name}.
func (f *Function) deleteSchedule(c *gin.Context) error {
	key, err := scheduleKey(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	if err := f.store.schedules.Delete(ctx, edge.OwnerOf(c), key); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// runSchedule is POST /api/schedules/{name}/run: a job at once.
func (f *Function) runSchedule(c *gin.Context) error {
	key, err := scheduleKey(c)
	if err != nil {
		return err
	}
	if err := f.limits.AllowJobs(c, 1); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	rules := schedulestore.Rules{Rules: f.rules, Defaults: f.defaults, Sealer: f.sealer}
	created, err := f.store.schedules.Run(ctx, edge.OwnerOf(c), key, rules)
	if err != nil {
		return err
	}
	e, err := apievent.Created(created)
	if err != nil {
		return err
	}
	f.hub.accept(apidb.ChangeStatus, created.JobID)
	f.outgoing.Add([]jobevent.Item{e})
	c.Header("Location", "/api/jobs/"+created.JobID.String())
	c.JSON(http.StatusAccepted, runBody{JobID: created.JobID})
	return nil
}

type runBody struct {
	JobID uuid.UUID `json:"jobId"`
}
