package jobspec

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Limits of submit policies.
const (
	MaxUniqueFor   = 8_760 * time.Hour
	MaxThrottlePer = 24 * time.Hour
	MaxDebounce    = 24 * time.Hour
)

// debounceTimes is how many times its delay a job is held at most, if its request names no limit.
const debounceTimes = 10

// Until when a unique job is the only one.
const (
	UniqueWhileWaiting = "WAITING" // it has not started
	UniqueWhileActive  = "ACTIVE"  // it has not ended
)

// What becomes of a job whose singleton key is taken.
const (
	SingletonQueue = "queue"
	SingletonDrop  = "drop"
)

// Policies decide at its submit whether a request becomes a job, and when that may start. nil: the policy is not asked
// for. This is also the form in which they are stored and shown.
type Policies struct {
	Unique    *Unique    `json:"unique,omitempty"`
	Throttle  *Throttle  `json:"throttle,omitempty"`
	Singleton *Singleton `json:"singleton,omitempty"`
	Debounce  *Debounce  `json:"debounce,omitempty"`
}

// Unique makes a request a job only if the owner has no job with the key that was accepted within For and is still in
// the state of While.
type Unique struct {
	Key   string `json:"key"`
	For   Period `json:"for,omitempty"`   // 0: however long ago it was accepted
	While string `json:"while,omitempty"` // empty: whatever its state
}

// Throttle makes the owner's jobs with the key due at least Per apart.
type Throttle struct {
	Key   string `json:"key"`
	PerMs int64  `json:"perMs"`
}

// Per is the time between two jobs.
func (t Throttle) Per() time.Duration { return time.Duration(t.PerMs) * time.Millisecond }

// Singleton has the owner's jobs with the key run one at a time.
type Singleton struct {
	Key  string `json:"key"`
	Else string `json:"else"`
}

// Debounce has the owner's requests with the key change one held job, until none has come for Delay, or the first of
// them is MaxDelayMs old.
type Debounce struct {
	Key        string `json:"key"`
	DelayMs    int64  `json:"delayMs"`
	MaxDelayMs int64  `json:"maxDelayMs"`
}

// Delay is the time for which each request holds the job.
func (d Debounce) Delay() time.Duration { return time.Duration(d.DelayMs) * time.Millisecond }

// Drops reports whether a job is not accepted while another one has its singleton key.
func (p Policies) Drops() bool { return p.Singleton != nil && p.Singleton.Else == SingletonDrop }

// FindsJobs reports whether a request can get an existing job.
func (p Policies) FindsJobs() bool { return p.Unique != nil || p.Debounce != nil || p.Drops() }

// singletonLine begins the ordering keys of singletons. No client's key has a control character.
const singletonLine = "\x01"

// LineKey is the ordering key by which the job has its turn: its own, or one for its singleton key.
func (r *Request) LineKey() string {
	if r.Singleton != nil {
		return singletonLine + r.Singleton.Key
	}
	return r.OrderingKey
}

// SingletonOf returns the singleton key of which LineKey made an ordering key.
func SingletonOf(lineKey string) (key string, is bool) {
	return strings.CutPrefix(lineKey, singletonLine)
}

// Period is a duration that JSON has as text, such as 90s or 24h.
type Period time.Duration

// MarshalText writes hours, minutes and seconds without those that are 0.
func (p Period) MarshalText() ([]byte, error) {
	text := time.Duration(p).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return []byte(text), nil
}

// UnmarshalText reads a duration.
func (p *Period) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*p = Period(d)
	return err
}

// MarshalPolicies writes policies; nil: there are none.
func MarshalPolicies(p Policies) json.RawMessage {
	if p == (Policies{}) {
		return nil
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("write submit policies: %v", err)) // texts and numbers only
	}
	return b
}

func (r reader) unique() *Unique {
	u := &Unique{}
	hasFor := false
	r.keyed(&u.Key, func(name string) {
		switch name {
		case "for":
			hasFor = true
			u.For = r.period(time.Second, MaxUniqueFor)
		case "while":
			u.While = r.OneOf([]string{UniqueWhileWaiting, UniqueWhileActive})
		default:
			r.Unknown()
		}
	})
	if !hasFor && u.While == "" {
		u.While = UniqueWhileActive
	}
	return u
}

func (r reader) throttle() *Throttle {
	t := &Throttle{}
	hasPer := false
	ok := r.keyed(&t.Key, func(name string) {
		if name != "perMs" {
			r.Unknown()
			return
		}
		hasPer = true
		t.PerMs = r.Integer(1, MaxThrottlePer.Milliseconds())
	})
	if ok && !hasPer {
		r.BadIn("perMs", "is required")
	}
	return t
}

func (r reader) singleton() *Singleton {
	s := &Singleton{Else: SingletonQueue}
	r.keyed(&s.Key, func(name string) {
		if name != "else" {
			r.Unknown()
			return
		}
		s.Else = r.OneOf([]string{SingletonQueue, SingletonDrop})
	})
	return s
}

func (r reader) debounce() *Debounce {
	d := &Debounce{}
	hasDelay, hasMost := false, false
	ok := r.keyed(&d.Key, func(name string) {
		switch name {
		case "delayMs":
			hasDelay = true
			d.DelayMs = r.Integer(1, MaxDebounce.Milliseconds())
		case "maxDelayMs":
			hasMost = true
			d.MaxDelayMs = r.Integer(1, MaxDebounce.Milliseconds())
		default:
			r.Unknown()
		}
	})
	switch {
	case ok && !hasDelay:
		r.BadIn("delayMs", "is required")
	case !hasMost:
		d.MaxDelayMs = min(debounceTimes*d.DelayMs, MaxDebounce.Milliseconds())
	case d.MaxDelayMs > 0 && d.MaxDelayMs < d.DelayMs:
		r.BadIn("maxDelayMs", "must not be less than delayMs")
	}
	return d
}

// keyed reads an object with a key, and has member read the other members.
func (r reader) keyed(key *string, member func(name string)) (ok bool) {
	hasKey := false
	ok = r.Object(func() {
		if string(r.Name) != "key" {
			member(string(r.Name))
			return
		}
		hasKey = true
		*key = r.Label(MaxKey)
	})
	if ok && !hasKey {
		r.BadIn("key", "is required")
	}
	return ok
}

// period reads a duration.
func (r reader) period(least, most time.Duration) Period {
	s, ok := r.Text(MaxKey)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < least || d > most {
		r.Bad("must be a duration such as 90s or 24h, from %s to %dh", least, most/time.Hour)
	}
	return Period(d)
}

// checkPolicies notes the policies that go with no other member of the request, or not with its value.
func (r reader) checkPolicies(req *Request, hasTime bool) {
	if req.Singleton != nil && req.OrderingKey != "" {
		r.BadAt("singleton", "and orderingKey exclude each other")
	}
	if req.Throttle != nil && hasTime {
		r.BadAt("throttle", "decides when the job may start: it goes with neither runAt nor delayMs")
	}
	if req.Debounce == nil {
		return
	}
	if hasTime {
		r.BadAt("debounce", "decides when the job may start: it goes with neither runAt nor delayMs")
	}
	for name, has := range map[string]bool{
		"after": len(req.After) > 0, "batchId": req.BatchID != uuid.Nil, "unique": req.Unique != nil,
		"throttle": req.Throttle != nil,
	} {
		if has {
			r.BadAt("debounce", "and %s exclude each other", name)
		}
	}
}
