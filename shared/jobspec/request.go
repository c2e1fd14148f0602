package jobspec

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Request is a job that was asked for, with its defaults filled in.
type Request struct {
	jobevent.Spec

	JobType        string
	Payload        json.RawMessage // any JSON value, as sent; shares memory with the decoded body
	Queue          string
	RunAt          *time.Time // UTC, in microseconds; at most one of RunAt and Delay is set
	Delay          time.Duration
	IdempotencyKey string               // empty: none
	JobID          uuid.UUID            // that the client has made, whose text is the IdempotencyKey, too; zero: none
	Tags           []string             // each once, in the order of the request
	OwnerID        string               // empty: none
	ExpiresAt      *time.Time           // as RunAt; not started by then: cancelled
	OrderingKey    string               // of its owner's jobs with this key one runs after another; empty: none
	FairnessKey    string               // shares its queue with other keys; empty: its owner is the key
	After          []uuid.UUID          // jobs of its owner that have to end first, each once
	RunAnyway      bool                 // also when one of After does not complete
	Conditions     []jobstate.Condition // how each of After has to end; nil: as RunAnyway has it
	Inputs         []jobevent.Input     // the jobs to whose outputs the payload refers
	CallbackURL    string               // where its end is delivered to; empty: nowhere
	BatchID        uuid.UUID            // the batch that it joins; zero: none
	RunAgainOf     uuid.UUID            // the job that this one does once more; zero: none. No member of a request
	ForEach        *ForEach             // it becomes a job for each element of an array; nil: it is one job
	Element        *Element             // it is the job of an element; nil: of none. No member of a request
	Event          json.RawMessage      // the attributes of its CloudEvent; nil: none. No member of a request
	Silent         Silent

	Policies
}

// Silent lists the members that a request leaves to the server, beside those that are the same for all.
type Silent struct {
	MaxRetryCount, RetryPolicy, Timeout bool
}

// IsPlain reports whether a request is without those wishes that few have.
func (r *Request) IsPlain() bool {
	return r.OrderingKey == "" && len(r.After) == 0 && r.ExpiresAt == nil && r.CallbackURL == "" &&
		r.RunAgainOf == uuid.Nil && r.BatchID == uuid.Nil && r.Event == nil && r.Policies == Policies{}
}

// OwnFairnessKey is the fairness key that the request names in place of the default, which is the owner; empty: the
// default holds.
func (r *Request) OwnFairnessKey() string {
	if r.FairnessKey == r.OwnerID {
		return ""
	}
	return r.FairnessKey
}

// DueAt is when a job that is accepted now may run: now, unless it asked for a later time.
func (r *Request) DueAt(now time.Time) time.Time {
	if r.RunAt != nil && r.RunAt.After(now) {
		return *r.RunAt
	}
	if r.Debounce != nil {
		return now.Add(r.Debounce.Delay())
	}
	return now.Add(r.Delay)
}

// silent is a request of which nothing has been read.
func silent() Request {
	return Request{
		Queue:  DefaultQueue,
		Spec:   jobevent.Spec{MaxRetryCount: DefaultMaxRetryCount, TimeoutMs: DefaultTimeout.Milliseconds()},
		Silent: Silent{MaxRetryCount: true, RetryPolicy: true, Timeout: true},
	}
}

// member is a member of a request by its name in JSON: how it is read, written and compared.
type member struct {
	name string

	// read reads it from JSON, or from a parameter of a query; nil: body does.
	read func(in input, d *draft)
	// body reads what no parameter has.
	body func(r reader, d *draft)

	// write returns what a client would write; nil: nothing, since the default holds. Without write no patch names it.
	write func(r *Request) any
	// canonical is write for Canonical; without it write is.
	canonical func(r *Request) any

	changes bool // also of a job that has been accepted
}

// input has the value of one member. What is wrong with the value it notes.
type input interface {
	Checked(check func(string) string) string
	Label(most int) string
	Integer(least, most int64) int64
	Millis(least, most time.Duration) time.Duration
	Instant() *time.Time
	Boolean() bool
	tags() []string
	after() dependencies
}

// draft is a request that is being read.
type draft struct {
	Request

	after dependencies

	hasType, hasPayload, hasDelay, hasAfter, hasOnFailure bool
}

// members are those of a request. Canonical writes them in this order, so a new one goes to the end: the hashes of
// requests are stored.
var members = []member{
	{
		name:  "jobType",
		read:  func(in input, d *draft) { d.hasType, d.JobType = true, in.Checked(WrongJobType) },
		write: func(r *Request) any { return r.JobType },
	},
	{
		name:    "payload",
		body:    func(r reader, d *draft) { d.hasPayload, d.Payload = true, json.RawMessage(r.Raw()) },
		write:   func(r *Request) any { return r.Payload },
		changes: true,
	},
	{
		name: "maxRetryCount",
		read: func(in input, d *draft) {
			d.MaxRetryCount, d.Silent.MaxRetryCount = int(in.Integer(0, MaxRetryCount)), false
		},
		write:     func(r *Request) any { return r.MaxRetryCount },
		canonical: func(r *Request) any { return unless(r.MaxRetryCount, DefaultMaxRetryCount) },
		changes:   true,
	},
	{
		name:  "retryPolicy",
		body:  func(r reader, d *draft) { d.RetryPolicy, d.Silent.RetryPolicy = r.policy(), false },
		write: func(r *Request) any { return PolicyFields(r.RetryPolicy) },
		canonical: func(r *Request) any {
			if r.RetryPolicy.Equal(nil) {
				return nil
			}
			return r.RetryPolicy
		},
		changes: true,
	},
	{
		name:      "queue",
		read:      func(in input, d *draft) { d.Queue = in.Checked(WrongQueue) },
		write:     func(r *Request) any { return r.Queue },
		canonical: func(r *Request) any { return unless(r.Queue, DefaultQueue) },
		changes:   true,
	},
	{
		name:      "priority",
		read:      func(in input, d *draft) { d.Priority = int(in.Integer(0, MaxPriority)) },
		write:     func(r *Request) any { return r.Priority },
		canonical: func(r *Request) any { return unless(r.Priority, 0) },
		changes:   true,
	},
	{
		name:    "runAt",
		read:    func(in input, d *draft) { d.RunAt = in.Instant() },
		write:   func(r *Request) any { return some(r.RunAt) },
		changes: true,
	},
	{
		name:    "delayMs",
		read:    func(in input, d *draft) { d.hasDelay, d.Delay = true, in.Millis(0, MaxAhead) },
		write:   func(r *Request) any { return unless(r.Delay.Milliseconds(), 0) },
		changes: true,
	},
	{
		name: "timeoutMs",
		read: func(in input, d *draft) {
			d.TimeoutMs, d.Silent.Timeout = in.Millis(time.Millisecond, MaxTimeout).Milliseconds(), false
		},
		write: func(r *Request) any { return r.TimeoutMs },
		canonical: func(r *Request) any {
			return unless(r.TimeoutMs, DefaultTimeout.Milliseconds())
		},
		changes: true,
	},
	{
		name:      "tags",
		read:      func(in input, d *draft) { d.Tags = in.tags() },
		write:     func(r *Request) any { return list(r.Tags) },
		canonical: func(r *Request) any { return list(slices.Sorted(slices.Values(r.Tags))) },
		changes:   true,
	},
	{
		name:  "ownerId",
		body:  func(r reader, d *draft) { d.OwnerID = r.Label(MaxKey) },
		write: func(r *Request) any { return unless(r.OwnerID, "") },
	},
	{
		name:    "expiresAt",
		read:    func(in input, d *draft) { d.ExpiresAt = in.Instant() },
		write:   func(r *Request) any { return some(r.ExpiresAt) },
		changes: true,
	},
	{
		name:  "orderingKey",
		read:  func(in input, d *draft) { d.OrderingKey = in.Label(MaxKey) },
		write: func(r *Request) any { return unless(r.OrderingKey, "") },
	},
	{
		name:      "fairnessKey",
		read:      func(in input, d *draft) { d.FairnessKey = in.Label(MaxKey) },
		write:     func(r *Request) any { return unless(r.FairnessKey, "") },
		canonical: func(r *Request) any { return unless(r.OwnFairnessKey(), "") },
	},
	{
		name:  "keepBuild",
		read:  func(in input, d *draft) { d.KeepBuild = in.Boolean() },
		write: func(r *Request) any { return unless(r.KeepBuild, false) },
	},
	{
		name: "after",
		read: func(in input, d *draft) {
			d.hasAfter, d.after = true, in.after()
			d.After = d.after.ids
		},
		write:     func(r *Request) any { return r.afterFields() },
		canonical: func(r *Request) any { return list(slices.SortedFunc(slices.Values(r.After), compareIDs)) },
	},
	{
		name: "onDependencyFailure",
		read: func(in input, d *draft) {
			d.hasOnFailure = true
			d.RunAnyway = parsed(in, parseOnDependencyFailure)
		},
		write: func(r *Request) any {
			if !r.RunAnyway {
				return nil
			}
			return OnDependencyFailureRun
		},
	},
	{name: "conditions", canonical: func(r *Request) any { return list(r.conditionsByID()) }},
	{name: "inputs", canonical: func(r *Request) any { return list(r.Inputs) }},
	{
		name:  "callbackUrl",
		read:  func(in input, d *draft) { d.CallbackURL = in.Checked(checkCallbackURL) },
		write: func(r *Request) any { return unless(r.CallbackURL, "") },
	},
	{name: "runAgainOf", canonical: func(r *Request) any { return unless(r.RunAgainOf, uuid.Nil) }},
	{
		name:  "batchId",
		read:  func(in input, d *draft) { d.BatchID = parsed(in, parseBatchID) },
		write: func(r *Request) any { return unless(r.BatchID, uuid.Nil) },
	},
	{
		name:  "unique",
		body:  func(r reader, d *draft) { d.Unique = r.unique() },
		write: func(r *Request) any { return some(r.Unique) },
	},
	{
		name:  "throttle",
		body:  func(r reader, d *draft) { d.Throttle = r.throttle() },
		write: func(r *Request) any { return some(r.Throttle) },
	},
	{
		name:  "singleton",
		body:  func(r reader, d *draft) { d.Singleton = r.singleton() },
		write: func(r *Request) any { return some(r.Singleton) },
	},
	{
		name:  "debounce",
		body:  func(r reader, d *draft) { d.Debounce = r.debounce() },
		write: func(r *Request) any { return some(r.Debounce) },
	},
	// By the key requests are compared, and the id is a key.
	{
		name:      "idempotencyKey",
		body:      func(r reader, d *draft) { d.IdempotencyKey = r.Label(MaxKey) },
		write:     func(r *Request) any { return unless(r.IdempotencyKey, "") },
		canonical: func(*Request) any { return nil },
	},
	{name: "jobId", body: func(r reader, d *draft) { d.JobID = parsed(r, parseGivenID) }},
	{name: "forEach", body: func(r reader, d *draft) { d.ForEach = r.forEach() }}, // of flows, which are compared as sent
}

var memberOf = func() map[string]*member {
	byName := make(map[string]*member, len(members))
	for i := range members {
		byName[members[i].name] = &members[i]
	}
	return byName
}()

// fromBody reads the member that comes next in JSON.
func (m *member) fromBody(r reader, in input, d *draft) {
	switch {
	case m == nil, m.read == nil && m.body == nil:
		r.UnknownBut(OtherName[string(r.Name)])
	case m.read != nil:
		m.read(in, d)
	default:
		m.body(r, d)
	}
}

func (m *member) canonicalOf(r *Request) any {
	if m.canonical != nil {
		return m.canonical(r)
	}
	if m.write != nil {
		return m.write(r)
	}
	return nil
}

// parsed is what parse makes of a text.
func parsed[T any](in input, parse func(string) (value T, wrong string)) (value T) {
	in.Checked(func(s string) (wrong string) {
		value, wrong = parse(s)
		return wrong
	})
	return value
}

// unless returns a value, or nil if it is the one that holds by default.
func unless[T comparable](value, byDefault T) any {
	if value == byDefault {
		return nil
	}
	return value
}

func some[T any](value *T) any {
	if value == nil {
		return nil
	}
	return value
}

func list[T any](values []T) any {
	if len(values) == 0 {
		return nil
	}
	return values
}
