package jobevent

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

// Spec is how a job is to run. Requests, events, both databases and views hold it, and none repeats its members. What a
// condition, an index or an order of a statement needs is no member: it has a column of its own.
//
// Equal specs are equal bytes: Bytes writes the members in this order. Why one value:
// docs/decisions/databases.md#how-a-job-is-to-run-is-one-json-value.
type Spec struct {
	Priority      int                 `json:"priority"`
	MaxRetryCount int                 `json:"maxRetryCount"`
	TimeoutMs     int64               `json:"timeoutMs"`
	RetryPolicy   *retrypolicy.Policy `json:"retryPolicy,omitempty"` // absent: retrypolicy.Default
	KeepBuild     bool                `json:"keepBuild,omitempty"`   // further attempts stay on the build of the last
}

// Timeout is how long an attempt may run.
func (s *Spec) Timeout() time.Duration { return time.Duration(s.TimeoutMs) * time.Millisecond }

// Equal reports whether two specs are the same bytes.
func (s *Spec) Equal(other *Spec) bool {
	a, b := *s, *other
	a.RetryPolicy, b.RetryPolicy = nil, nil
	return a == b && s.RetryPolicy.Equal(other.RetryPolicy)
}

// Bytes returns the spec as JSON, without a policy that is the default.
func (s *Spec) Bytes() json.RawMessage {
	written := *s
	if written.RetryPolicy.Equal(nil) {
		written.RetryPolicy = nil
	}
	b, err := Encode(&written)
	if err != nil {
		panic(fmt.Sprintf("write a spec: %v", err)) // cannot happen with numbers, strings and booleans
	}
	return b
}

// Limits of a spec.
const (
	MaxPriority   = 9
	MaxRetryCount = 100
	MaxTimeout    = 7 * 24 * time.Hour // the timers of workers in JavaScript hold 24 days
)

// Check returns an error that wraps ErrInvalid unless each member is within its limits.
func (s *Spec) Check() error {
	if s.Priority < 0 || s.Priority > MaxPriority || s.MaxRetryCount < 0 || s.MaxRetryCount > MaxRetryCount ||
		s.TimeoutMs < 1 || s.TimeoutMs > MaxTimeout.Milliseconds() {
		return fmt.Errorf("run a job as %s: %w", s.Bytes(), ErrInvalid)
	}
	return nil
}

// Members returns a JSON object with those members whose names are wanted, the default policy written out; nil: none
// is.
func (s *Spec) Members(wanted func(name string) bool) json.RawMessage {
	whole := *s
	if whole.RetryPolicy == nil {
		whole.RetryPolicy = &retrypolicy.Default
	}
	members := map[string]any{}
	fields := reflect.ValueOf(whole)
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
		if wanted(name) {
			members[name] = fields.Field(i).Interface()
		}
	}
	if len(members) == 0 {
		return nil
	}
	b, err := Encode(members)
	if err != nil {
		panic(fmt.Sprintf("write members of a spec: %v", err)) // as in Bytes
	}
	return b
}

// Change returns the spec with the members of patch, as Members returns them. Its errors wrap ErrInvalid.
func (s *Spec) Change(patch []byte) (Spec, error) {
	changed := *s
	changed.RetryPolicy = nil // a policy is replaced and not merged
	if err := jsonv2.Unmarshal(patch, &changed); err != nil {
		return *s, fmt.Errorf("read the change of a spec: %w: %w", err, ErrInvalid)
	}
	if changed.RetryPolicy == nil {
		changed.RetryPolicy = s.RetryPolicy
	}
	if err := changed.Check(); err != nil {
		return *s, err
	}
	return changed, nil
}

// ReadSpec returns the spec of which Bytes are these.
func ReadSpec(raw []byte) (spec Spec, err error) {
	if err := jsonv2.Unmarshal(raw, &spec); err != nil {
		return Spec{}, fmt.Errorf("read the spec of a job: %w", err)
	}
	return spec, nil
}
