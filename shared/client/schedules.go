package client

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// ScheduleRequest is a cron expression with a request for a job.
type ScheduleRequest struct {
	Name     string     `json:"name,omitempty"`
	Cron     string     `json:"cron"`
	TimeZone string     `json:"timeZone,omitempty"` // of the IANA database; empty: UTC
	Job      JobRequest `json:"job"`
	Overlap  string     `json:"overlap,omitempty"` // OverlapAllow, OverlapSkip or OverlapCancel; empty: OverlapAllow
	Missed   string     `json:"missed,omitempty"`  // MissedSkip, MissedOne or MissedAll; empty: MissedOne
	Paused   bool       `json:"paused,omitempty"`
	StartAt  time.Time  `json:"startAt,omitzero"` // it does not fire before
	EndAt    time.Time  `json:"endAt,omitzero"`   // it does not fire after
}

// What a schedule does at a tick while a job of it has not ended, and which ticks that are more than 30 s late fire.
const (
	OverlapAllow  = "allow"
	OverlapSkip   = "skip"
	OverlapCancel = "cancel" // the older job

	MissedSkip = "skip"
	MissedOne  = "one" // the last one
	MissedAll  = "all"
)

// Schedule is a schedule as the API shows it.
type Schedule struct {
	Name      string          `json:"name"`
	OwnerID   string          `json:"ownerId"`
	Cron      string          `json:"cron"`
	TimeZone  string          `json:"timeZone"`
	Job       json.RawMessage `json:"job"` // as it was submitted; null: it cannot be shown
	Overlap   string          `json:"overlap"`
	Missed    string          `json:"missed"`
	Paused    bool            `json:"paused"`
	StartAt   *time.Time      `json:"startAt"`
	EndAt     *time.Time      `json:"endAt"`
	NextAt    *time.Time      `json:"nextAt"` // nil: it is paused, or has no further tick
	Upcoming  []time.Time     `json:"upcoming"`
	LastAt    *time.Time      `json:"lastAt"` // the last tick that fired
	LastJobID string          `json:"lastJobId"`
	CreatedAt time.Time       `json:"createdAt"`
	UpdatedAt time.Time       `json:"updatedAt"`
	DefinedBy string          `json:"definedBy"` // the job type whose workers define it in code; empty: none
	Sealed    []string        `json:"sealed"`    // members that cannot be shown
}

// ScheduleTick is an instant of a schedule, and what became of it.
type ScheduleTick struct {
	At         time.Time `json:"at"`
	Outcome    string    `json:"outcome"` // fired or skipped
	Reason     string    `json:"reason"`
	JobID      string    `json:"jobId"`
	RecordedAt time.Time `json:"recordedAt"`
}

// Schedules are the schedules of the key's owner, or those of Of.
type Schedules struct {
	c       *Client
	ownerID string
}

// Of returns the schedules of an owner, for an administrator's key and where authentication is off.
func (s Schedules) Of(ownerID string) Schedules { return Schedules{c: s.c, ownerID: ownerID} }

func (s Schedules) values() url.Values { return given("ownerId", s.ownerID) }

func (s Schedules) at(name string, more ...string) string {
	return place(append([]string{"schedules", name}, more...)...) + query(s.values())
}

// owned returns the request with its owner: where authentication is off, that is the owner of its job.
func (s Schedules) owned(schedule ScheduleRequest) ScheduleRequest {
	schedule.Job.OwnerID = cmp.Or(schedule.Job.OwnerID, s.ownerID)
	return schedule
}

// Create creates a schedule, which has a name. If there is one with its name, that is an ErrConflict.
func (s Schedules) Create(ctx context.Context, schedule ScheduleRequest) (*Schedule, error) {
	return answer[Schedule](ctx, s.c, request{method: http.MethodPost, path: "/api/schedules"}, s.owned(schedule))
}

// Set creates or replaces a schedule. With the same cron expression and time zone it continues; else its ticks begin
// anew.
func (s Schedules) Set(ctx context.Context, name string, schedule ScheduleRequest) (*Schedule, error) {
	return answer[Schedule](ctx, s.c, request{method: http.MethodPut, path: s.at(name)}, s.owned(schedule))
}

// Get reads a schedule.
func (s Schedules) Get(ctx context.Context, name string) (*Schedule, error) {
	return fetch[Schedule](ctx, s.c, s.at(name))
}

// List reads all schedules by name, page by page. It ends after an error.
func (s Schedules) List(ctx context.Context) iter.Seq2[*Schedule, error] {
	return list[Schedule](ctx, s.c, "/api/schedules", "schedules", s.values())
}

// Delete deletes a schedule. Its jobs stay.
func (s Schedules) Delete(ctx context.Context, name string) error {
	_, err := s.c.do(ctx, request{method: http.MethodDelete, path: s.at(name)}, nil)
	return err
}

// Pause pauses a schedule: it submits no jobs until it is resumed.
func (s Schedules) Pause(ctx context.Context, name string) (*Schedule, error) {
	return again[Schedule](ctx, s.c, s.at(name, "pause"))
}

// Resume resumes a schedule. The ticks that fell into the pause are recorded as skipped.
func (s Schedules) Resume(ctx context.Context, name string) (*Schedule, error) {
	return again[Schedule](ctx, s.c, s.at(name, "resume"))
}

// Run submits a job of a schedule now, also while it is paused, and returns its id.
func (s Schedules) Run(ctx context.Context, name string) (jobID string, err error) {
	var run Accepted
	_, err = s.c.do(ctx, request{method: http.MethodPost, path: s.at(name, "run")}, &run)
	return run.JobID, err
}

// Ticks reads the ticks of a schedule, newest first, page by page. The last 1,000 are kept, for 30 days. It ends after
// an error.
func (s Schedules) Ticks(ctx context.Context, name string) iter.Seq2[*ScheduleTick, error] {
	return list[ScheduleTick](ctx, s.c, place("schedules", name, "ticks"), "ticks", s.values())
}

// Times returns the next five ticks of a cron expression that is not stored. Of the request, only Cron, TimeZone,
// StartAt and EndAt count.
func (s Schedules) Times(ctx context.Context, of ScheduleRequest) ([]time.Time, error) {
	values := given("cron", of.Cron, "timeZone", of.TimeZone, "startAt", instant(of.StartAt), "endAt", instant(of.EndAt))
	return all[time.Time](ctx, s.c, "/api/schedule-times"+query(values), "upcoming")
}
