package interplay

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// A Record is all that is known about one run of a program: what it asked and was answered, what the witness saw, and
// what the API shows at the end. The rules need nothing else, so a record can be stored and checked again.
type Record struct {
	Program Program   `json:"program"`
	Owner   string    `json:"owner"`
	Base    string    `json:"base"` // begins the keys and names that both owners of the program use
	Hook    string    `json:"hook"` // the owner of jobs that a hook made
	Other   string    `json:"other"`
	Began   time.Time `json:"began"`
	Lifted  time.Time `json:"lifted"` // when the program's pauses, limits and schedules were taken away

	Asked     []*Asked           `json:"asked"`
	Specs     map[string]*Spec   `json:"specs"` // by the names of jobs
	Runs      []*Run             `json:"runs"`
	Backs     []*Back            `json:"backs,omitempty"`
	Events    []*Sent            `json:"events,omitempty"` // for handlers
	Arrivals  []*Arrival         `json:"arrivals,omitempty"`
	Reports   map[string]*Report `json:"reports,omitempty"` // by job
	Mails     []*Mail            `json:"mails,omitempty"`
	Notices   []*NoticeSeen      `json:"notices,omitempty"` // of alerts
	Alerts    []AlertAsked       `json:"alerts,omitempty"`  // what the alerts of the program were to count
	Steps     []*StepRun         `json:"steps,omitempty"`
	Seen      []Seen             `json:"seen,omitempty"`
	Streamed  []Streamed         `json:"streamed,omitempty"`
	Windows   []*Window          `json:"windows,omitempty"`
	Faults    []Fault            `json:"faults,omitempty"`
	Committed map[string]bool    `json:"committed,omitempty"` // jobs of the outbox, by id: false if it was rolled back

	Jobs       map[string]*client.Job       `json:"jobs"` // as they are at the end
	Listed     map[string]*client.Job       `json:"listed"`
	Gone       map[string]*client.Job       `json:"gone,omitempty"` // those that were deleted, as the list showed them last
	Batches    map[string]*client.Batch     `json:"batches,omitempty"`
	Flows      map[string]*client.Flow      `json:"flows,omitempty"`
	Operations map[string]*client.Operation `json:"operations,omitempty"`
	Ticks      map[string][]Tick            `json:"ticks,omitempty"`
	Deliveries map[string][]Delivery        `json:"deliveries,omitempty"`
	Counts     map[string]int               `json:"counts,omitempty"`    // of the statistics
	Dead       map[string]int               `json:"dead,omitempty"`      // FAILED jobs by type and error code
	Unchanged  map[string]int               `json:"unchanged,omitempty"` // what a GET with the last ETag was answered
	Blocked    []Blocked                    `json:"blocked,omitempty"`
	Filters    map[string][]string          `json:"filters,omitempty"` // what a filter found, by its query
	Open       []*client.Job                `json:"open,omitempty"`    // what did not end
	Remaining  []string                     `json:"remaining,omitempty"`
	Others     []string                     `json:"others,omitempty"` // the ids of all that the other owner has made
	Lists      map[string][]string          `json:"lists,omitempty"`  // the ids in lists without a filter, by their paths
	Waits      []Waiting                    `json:"waits,omitempty"`
	Troubles   []string                     `json:"troubles,omitempty"` // answers that no request may get
}

// Asked is one request with its answer.
type Asked struct {
	Step   int             `json:"step"`
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Header string          `json:"header,omitempty"` // Idempotency-Key
	Type   string          `json:"type,omitempty"`   // of the content, if not JSON
	Body   json.RawMessage `json:"body,omitempty"`
	Sent   time.Time       `json:"sent"`
	At     time.Time       `json:"at"` // of the answer
	Status int             `json:"status"`
	Code   string          `json:"code,omitempty"` // errorCode
	Answer json.RawMessage `json:"answer,omitempty"`
	Admin  bool            `json:"admin,omitempty"`  // with a key of the installation
	Hooked bool            `json:"hooked,omitempty"` // and for the owner of the hook
	Want   int             `json:"want,omitempty"`   // it is about a thing of the other owner, and has to be answered so
	Again  bool            `json:"again,omitempty"`  // an earlier try was not answered, so it may have been carried out

	Jobs []string `json:"jobs,omitempty"` // the ids that it made or got, in the order of the request; or its job
}

func (a *Asked) ok() bool { return a.Status >= 200 && a.Status < 300 }

// Spec is what was asked for under a name.
type Spec struct {
	Job     Job       `json:"job"`
	Way     string    `json:"way"`
	ID      string    `json:"id,omitempty"` // empty: it was refused
	Made    bool      `json:"made,omitempty"`
	By      string    `json:"by,omitempty"` // the policy that found the job
	Sent    time.Time `json:"sent"`
	At      time.Time `json:"at"`
	Status  int       `json:"status"`
	Code    string    `json:"code,omitempty"`
	Owner   string    `json:"owner"`             // of the key or the hook that made the job
	Foreign bool      `json:"foreign,omitempty"` // which is not the owner of the program
	Deleted string    `json:"deleted,omitempty"` // the id in the request, if its job was deleted before
}

// Run is one start of a handler, as the witness saw it.
type Run struct {
	Job     string          `json:"job"`
	Name    string          `json:"name"` // of the request whose payload it got
	Attempt int             `json:"attempt"`
	Start   time.Time       `json:"start"`
	End     time.Time       `json:"end,omitzero"` // before its outcome was sent
	How     string          `json:"how,omitempty"`
	Cut     bool            `json:"cut,omitempty"` // its end was only noticed: the worker closed the connection, or nothing settled it
	Pull    bool            `json:"pull,omitempty"`
	Taker   string          `json:"taker,omitempty"` // the owner of the key that claimed it
	Owner   string          `json:"owner,omitempty"` // as the claim showed it
	Data    json.RawMessage `json:"data,omitempty"`
	Output  json.RawMessage `json:"output,omitempty"`
	Had     string          `json:"had,omitempty"`   // the checkpoint that it got
	Saved   string          `json:"saved,omitempty"` // the one that it saved
	DelayMs int             `json:"delayMs,omitempty"`
	Settled []int           `json:"settled,omitempty"` // answers to what a pull worker settled
	Waits   []WaitSeen      `json:"waits,omitempty"`   // answers about the waits of its job, for events and for jobs
	With    int             `json:"with,omitempty"`    // how many others of its claim were settled in the same request
	Stolen  []int           `json:"stolen,omitempty"`  // answers to the other owner, who tried to keep, save and settle it
	Wrong   string          `json:"wrong,omitempty"`   // why the signature of the call is not good
}

// WaitSeen is the answer about a wait.
type WaitSeen struct {
	Name   string    `json:"name"` // also the id of its event
	Asked  time.Time `json:"asked"`
	Status string    `json:"status"`
	Event  string    `json:"event,omitempty"` // the id of the one that it has got

	Group  string          `json:"group,omitempty"`  // of a call
	Job    string          `json:"job,omitempty"`    // the id of the job that was called
	Ended  string          `json:"ended,omitempty"`  // how that has ended
	Output json.RawMessage `json:"output,omitempty"` // of that job
}

// over returns the end of a run for comparisons with other runs: what is only noticed may be noticed late.
func (r *Run) over() time.Time {
	if r.Cut || r.End.IsZero() {
		return time.Time{}
	}
	return r.End
}

// Sent is an event for handlers, with the instant of its first 2xx.
type Sent struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

// Back is one callback with its answer.
type Back struct {
	Job     string    `json:"job"`
	Attempt int       `json:"attempt"`
	Status  string    `json:"status"`
	How     string    `json:"how"`
	Sent    time.Time `json:"sent"`
	At      time.Time `json:"at"`
	Answer  int       `json:"answer"`
	Code    string    `json:"code,omitempty"`
}

// Arrival is one request to the callbackUrl of a job.
type Arrival struct {
	ID      string    `json:"id"`
	Job     string    `json:"job"`
	Status  string    `json:"status"`
	Version int64     `json:"version"`
	At      time.Time `json:"at"`
	Answer  int       `json:"answer"`
	Wrong   string    `json:"wrong,omitempty"` // why its signature is not good
}

// Seen is what a list showed of a job.
type Seen struct {
	At      time.Time `json:"at"` // of the answer
	Job     string    `json:"job"`
	Status  string    `json:"status"`
	Version int64     `json:"version"`
	Attempt int       `json:"attempt"`
}

// Window is the time in which a control was surely in force.
type Window struct {
	Kind    string    `json:"kind"`
	Name    string    `json:"name"`
	Limit   Limit     `json:"limit"`
	From    time.Time `json:"from"`
	Applied bool      `json:"applied"`
	To      time.Time `json:"to,omitzero"` // when it was asked to change
}

// Fault is a disturbance of the whole installation, or of one process of a function.
type Fault struct {
	Kind string    `json:"kind"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`

	Retired []Retired `json:"retired,omitempty"` // by retention, if it is that
}

// Blocked is what a job under a pause showed.
type Blocked struct {
	Window int            `json:"window"`
	Job    string         `json:"job"`
	Status string         `json:"status"`
	By     []client.Block `json:"by"`
}

// Tick is one instant of a schedule.
type Tick struct {
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"`
	Reason  string    `json:"reason"`
	JobID   string    `json:"jobId"`
}

// Delivery is one message about the end of a job, as the API shows it.
type Delivery struct {
	ID        string `json:"id"`
	Version   int64  `json:"version"`
	JobStatus string `json:"jobStatus"`
	Status    string `json:"status"`
	Tries     int    `json:"tries"`
}

func terminal(status string) bool {
	return slices.Contains([]string{client.Completed, client.Failed, client.Cancelled}, status)
}
