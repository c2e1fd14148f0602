package interplay

// A Program is what an owner does with an installation; two owners do it at once. It is data, so that it can be printed, stored, shortened and
// run again. What a step makes is named by the step's number, which shortening keeps: the job of step 7 is s7, the
// second of its jobs s7.1. A step about a thing that was not made is skipped.
type Program struct {
	Seed  uint64 `json:"seed"`
	Alone bool   `json:"alone,omitempty"` // it uses what all programs share, or deletes what has ended
	Steps []Step `json:"steps"`
}

// Step is one thing that a program does.
type Step struct {
	N     int      `json:"n"`
	After int      `json:"after,omitempty"` // ms after the step before it
	Ended bool     `json:"ended,omitempty"` // it waits until what it is about has ended, for a while
	Race  bool     `json:"race,omitempty"`  // it does not wait for the answer to the step before
	Do    string   `json:"do"`
	Way   string   `json:"way,omitempty"`  // of a submit: one, many, event, events, structured, hook, outbox, rollback
	Jobs  []Job    `json:"jobs,omitempty"` // what it submits
	Of    string   `json:"of,omitempty"`   // what it is about
	More  []string `json:"more,omitempty"` // further jobs, or names of a flow

	Name  string `json:"name,omitempty"`  // of a control, a schedule, a queue or a disturbed function
	Kind  string `json:"kind,omitempty"`  // of a control
	Limit *Limit `json:"limit,omitempty"` // of a control

	Command string `json:"command,omitempty"` // of an operation, or of a request about a thing of the other owner
	By      string `json:"by,omitempty"`      // how an operation chooses: list, owner, tag, batch, ordering
	Ms      int    `json:"ms,omitempty"`      // of a reschedule, an expiry or a fault

	Patch  *Job `json:"patch,omitempty"`  // the changed members
	Closed bool `json:"closed,omitempty"` // of a batch
	All    bool `json:"all,omitempty"`    // of a retry of a flow; of a removed queue: drain

	OnComplete bool   `json:"onComplete,omitempty"`
	OnFailure  bool   `json:"onFailure,omitempty"`
	Cron       string `json:"cron,omitempty"`
	Overlap    string `json:"overlap,omitempty"`
	Missed     string `json:"missed,omitempty"`
}

// Job is a request for a job, and what its attempts are to do.
type Job struct {
	Name string `json:"name"`
	Type string `json:"type"` // FUNCTION, EXTERNAL, SIMULATION or PULL
	Acts []Act  `json:"acts,omitempty"`

	Queue      string   `json:"queue,omitempty"` // a created one, by its name; empty: the type's
	Priority   int      `json:"priority,omitempty"`
	MaxRetries *int     `json:"maxRetries,omitempty"`
	Policy     string   `json:"policy,omitempty"` // fixed, list, exponential, jitter; empty: exponential, 100 ms
	DelayMs    int      `json:"delayMs,omitempty"`
	RunAt      bool     `json:"runAt,omitempty"` // the delay is sent as an instant
	ExpiresMs  int      `json:"expiresMs,omitempty"`
	TimeoutMs  int      `json:"timeoutMs,omitempty"`
	WaitMs     int      `json:"waitMs,omitempty"` // callbackTimeoutMs
	Idem       string   `json:"idem,omitempty"`   // the idempotency key
	OwnID      bool     `json:"ownId,omitempty"`  // the client chooses the id
	Ordering   string   `json:"ordering,omitempty"`
	Singleton  string   `json:"singleton,omitempty"`
	Drop       bool     `json:"drop,omitempty"` // of the singleton
	Unique     string   `json:"unique,omitempty"`
	While      string   `json:"while,omitempty"`
	Throttle   string   `json:"throttle,omitempty"`
	PerMs      int      `json:"perMs,omitempty"`
	Debounce   string   `json:"debounce,omitempty"`
	HoldMs     int      `json:"holdMs,omitempty"`
	MaxHoldMs  int      `json:"maxHoldMs,omitempty"`
	Fairness   string   `json:"fairness,omitempty"`
	Tags       []string `json:"tags,omitempty"`
	After      []Need   `json:"after,omitempty"`
	AnyEnd     bool     `json:"anyEnd,omitempty"` // onDependencyFailure: run
	Uses       string   `json:"uses,omitempty"`   // the output of this job goes into the payload
	Default    bool     `json:"default,omitempty"`
	ForEach    string   `json:"forEach,omitempty"`
	Batch      string   `json:"batch,omitempty"`
	Callback   string   `json:"callback,omitempty"` // how the receiver of its end answers: ok, or once500
	KeepBuild  bool     `json:"keepBuild,omitempty"`
	Unowned    bool     `json:"-"`                // it comes through the relay, whose key has no owner
	Claims     bool     `json:"claims,omitempty"` // it names the other owner as its owner
}

// Need is an entry of after.
type Need struct {
	Of string `json:"of"`
	On string `json:"on,omitempty"`
}

// Act is what one start of a job does. The last act of a job is repeated.
type Act struct {
	Do    string `json:"do"` // one of acts
	Ms    int    `json:"ms,omitempty"`
	Back  string `json:"back,omitempty"`  // of later: how the outside system calls back
	Saves bool   `json:"saves,omitempty"` // a checkpoint, before it ends
	Calls []Job  `json:"calls,omitempty"` // of call: the jobs that it calls together
}

// What an attempt does at its end.
const (
	actOK     = "ok"
	actFail   = "fail"       // with an error that is retried
	actFatal  = "fatal"      // with one that is not
	actAfter  = "retryAfter" // fails, and names the time of the next try
	actSnooze = "snooze"
	actDrop   = "drop"  // closes the connection
	actHang   = "hang"  // longer than its timeout; a pull worker: without a heartbeat
	actLater  = "later" // hands the attempt to an outside system
	actTwice  = "twice" // of a pull worker: settles twice
	actTardy  = "tardy" // of a pull worker: settles after its timeout

	actReceive = "receive" // of a pull worker: waits for an event
	actCall    = "call"    // of a pull worker: calls jobs and waits for their ends
)

// How an outside system calls back.
const (
	backOK       = "ok"
	backFail     = "fail"
	backFatal    = "fatal"
	backEarly    = "early"    // before the attempt has handed over
	backTwice    = "twice"    // the same twice, and then another one
	backWrong    = "wrong"    // with a wrong secret first
	backNever    = "never"    // so that the attempt's callback times out
	backProgress = "progress" // reports progress first
	backLate     = "late"     // after the deadline
)

// Limit is the body of a control.
type Limit struct {
	Paused     bool     `json:"paused"`
	MaxRunning *int     `json:"maxRunning,omitempty"`
	Rate       *float64 `json:"startsPerSecond,omitempty"`
	Weight     *int     `json:"weight,omitempty"`
}
