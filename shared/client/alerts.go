package client

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// AlertRequest is a rule about failed jobs, and where its notices go.
type AlertRequest struct {
	Name          string      `json:"name,omitempty"`
	OwnerID       string      `json:"ownerId,omitempty"`       // only the installation may name another than its own
	JobType       string      `json:"jobType,omitempty"`       // empty: all but ALERT
	Queue         string      `json:"queue,omitempty"`         // empty: all
	ErrorCode     string      `json:"errorCode,omitempty"`     // empty: any, or none
	Failures      int         `json:"failures,omitempty"`      // it fires if so many jobs have failed in the window; 0: 1
	Percent       int         `json:"percent,omitempty"`       // and if they are so many of those that ended; 0: any part
	WindowMinutes int         `json:"windowMinutes,omitempty"` // 0: 5
	QuietMinutes  int         `json:"quietMinutes,omitempty"`  // the least time between two notices that it fires; 0: 60
	To            Destination `json:"to"`
	Paused        bool        `json:"paused,omitempty"`
}

// Destination is where notices go: to one of these.
type Destination struct {
	Webhook string   `json:"webhook,omitempty"` // a URL, which gets a CloudEvent
	Slack   string   `json:"slack,omitempty"`   // the URL of an incoming webhook
	Email   []string `json:"email,omitempty"`   // addresses
}

// Alert is an alert as the API shows it. URLs are shown without their paths.
type Alert struct {
	Name          string       `json:"name"`
	OwnerID       string       `json:"ownerId"` // empty: it is the installation's, and counts the jobs of all owners
	JobType       string       `json:"jobType"`
	Queue         string       `json:"queue"`
	ErrorCode     string       `json:"errorCode"`
	Failures      int          `json:"failures"`
	Percent       int          `json:"percent"` // 0: any part
	WindowMinutes int          `json:"windowMinutes"`
	QuietMinutes  int          `json:"quietMinutes"`
	To            *Destination `json:"to"` // nil: it cannot be shown
	Paused        bool         `json:"paused"`
	State         string       `json:"state"` // OK or FIRING
	FiringSince   *time.Time   `json:"firingSince"`
	AnnouncedAt   *time.Time   `json:"announcedAt"` // the last notice that it fires
	Failed        int          `json:"failed"`      // of the window
	Ended         int          `json:"ended"`       // likewise, those that completed or failed
	CreatedAt     time.Time    `json:"createdAt"`
	UpdatedAt     time.Time    `json:"updatedAt"`
	Sealed        []string     `json:"sealed"` // members that cannot be shown
}

// Notice is a message about the state of an alert.
type Notice struct {
	NoticeID string    `json:"noticeId"`
	At       time.Time `json:"at"`
	State    string    `json:"state"` // FIRING, RESOLVED or TEST
	Failed   int       `json:"failed"`
	Ended    int       `json:"ended"`
	JobID    string    `json:"jobId"` // the job that sends it
}

// Alerts are the alerts of the key's owner, or those of Of.
type Alerts struct {
	c       *Client
	ownerID string
}

// Of returns the alerts of an owner, for an administrator's key and where authentication is off.
func (a Alerts) Of(ownerID string) Alerts { return Alerts{c: a.c, ownerID: ownerID} }

func (a Alerts) values() url.Values { return given("ownerId", a.ownerID) }

func (a Alerts) at(name string, more ...string) string {
	return place(append([]string{"alerts", name}, more...)...) + query(a.values())
}

func (a Alerts) owned(alert AlertRequest) AlertRequest {
	alert.OwnerID = cmp.Or(alert.OwnerID, a.ownerID)
	return alert
}

// Create creates an alert, which has a name. If there is one with its name, that is an ErrConflict.
func (a Alerts) Create(ctx context.Context, alert AlertRequest) (*Alert, error) {
	return answer[Alert](ctx, a.c, request{method: http.MethodPost, path: "/api/alerts"}, a.owned(alert))
}

// Set creates or replaces an alert.
func (a Alerts) Set(ctx context.Context, name string, alert AlertRequest) (*Alert, error) {
	return answer[Alert](ctx, a.c, request{method: http.MethodPut, path: a.at(name)}, a.owned(alert))
}

// Get reads an alert.
func (a Alerts) Get(ctx context.Context, name string) (*Alert, error) {
	return fetch[Alert](ctx, a.c, a.at(name))
}

// List reads all alerts by name, page by page. It ends after an error.
func (a Alerts) List(ctx context.Context) iter.Seq2[*Alert, error] {
	return list[Alert](ctx, a.c, "/api/alerts", "alerts", a.values())
}

// Delete deletes an alert with its notices.
func (a Alerts) Delete(ctx context.Context, name string) error {
	_, err := a.c.do(ctx, request{method: http.MethodDelete, path: a.at(name)}, nil)
	return err
}

// Pause pauses an alert: it sends no notices until it is resumed.
func (a Alerts) Pause(ctx context.Context, name string) (*Alert, error) {
	return again[Alert](ctx, a.c, a.at(name, "pause"))
}

// Resume resumes an alert.
func (a Alerts) Resume(ctx context.Context, name string) (*Alert, error) {
	return again[Alert](ctx, a.c, a.at(name, "resume"))
}

// Test sends a notice now, and returns the id of the job that does.
func (a Alerts) Test(ctx context.Context, name string) (jobID string, err error) {
	var sent Accepted
	_, err = a.c.do(ctx, request{method: http.MethodPost, path: a.at(name, "test")}, &sent)
	return sent.JobID, err
}

// Notices reads the notices of an alert, newest first, page by page. The last 200 are kept. It ends after an error.
func (a Alerts) Notices(ctx context.Context, name string) iter.Seq2[*Notice, error] {
	return list[Notice](ctx, a.c, place("alerts", name, "notices"), "notices", a.values())
}
