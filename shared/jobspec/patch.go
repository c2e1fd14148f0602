package jobspec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// Patch changes a request by the rules of a JSON Merge Patch (RFC 7396): a member replaces that of the request, an
// object is merged into it, and null takes it away, so that its default holds.
type Patch struct{ root patchValue }

// patchValue is an object of a patch, or any other value as it was written.
type patchValue struct {
	raw     jsontext.Value // nil: an object
	members []patchMember
}

type patchMember struct {
	name  string
	value patchValue
}

// mergedRoom is how much longer than MaxJobBytes a merged request may be: the defaults that its client did not write.
const mergedRoom = 1 << 10

// DecodePatch reads a patch of a request. It refuses unknown members and broken JSON as Decode does; whether the
// values fit is known when it is applied. The error is an *apierror.Error.
func DecodePatch(body []byte) (Patch, error) {
	if err := checkSize(body); err != nil {
		return Patch{}, err
	}
	if p := strictjson.Scan(body, ""); p != nil {
		return Patch{}, p.Err("job request")
	}
	r := newReader(body, "")
	var patch Patch
	r.Object(func() {
		name := string(r.Name)
		if m := memberOf[name]; m == nil || m.write == nil {
			r.UnknownBut(OtherName[name])
			return
		}
		patch.root.members = append(patch.root.members, patchMember{name, r.patchValue()})
	})
	p := r.Close()
	return patch, p.Err("job request")
}

// patchValue reads the value that comes next. strictjson.Scan has bounded how deep it is.
func (r reader) patchValue() (v patchValue) {
	if r.Peek() != '{' {
		v.raw = r.Raw()
		return v
	}
	r.Object(func() {
		name := string(r.Name)
		v.members = append(v.members, patchMember{name, r.patchValue()})
	})
	return v
}

// changeFields are the members that can be changed of a job that has been accepted and has not started.
func changeFields() (names []string) {
	for i := range members {
		if members[i].changes {
			names = append(names, members[i].name)
		}
	}
	return names
}

// DecodeChange is DecodePatch for the members that can be changed of a job.
func DecodeChange(body []byte) (Patch, error) {
	patch, err := DecodePatch(body)
	if err != nil {
		return patch, err
	}
	var p strictjson.Problems
	for _, m := range patch.root.members {
		if !memberOf[m.name].changes {
			p.Add(m.name, "cannot be changed; run-again makes another job of it")
		}
	}
	if len(patch.root.members) == 0 {
		p.Add("", "must name what to change: "+strings.Join(changeFields(), ", "))
	}
	if patch.Names("runAt") && patch.Names("delayMs") {
		p.Add("delayMs", bothTimes)
	}
	return patch, p.Err("job request")
}

// Names reports whether the patch has one of some members, be it null.
func (p Patch) Names(fields ...string) bool {
	return slices.ContainsFunc(p.root.members, func(m patchMember) bool { return slices.Contains(fields, m.name) })
}

// Public is the patch without its payload, for the audit log; nil: it has nothing else.
func (p Patch) Public() json.RawMessage {
	shown := patchValue{members: slices.DeleteFunc(slices.Clone(p.root.members), func(m patchMember) bool {
		return m.name == "payload"
	})}
	if len(shown.members) == 0 {
		return nil
	}
	return json.RawMessage(shown.appendTo(nil))
}

// appendTo appends the patch as it is.
func (v patchValue) appendTo(dst []byte) []byte {
	if v.raw != nil {
		return append(dst, v.raw...)
	}
	dst = append(dst, '{')
	first := len(dst)
	for _, m := range v.members {
		dst = m.value.appendTo(appendName(dst, m.name, first))
	}
	return append(dst, '}')
}

// Apply returns the request that the patch makes of another, with its defaults filled in. A retryPolicy of another type
// replaces the one of before, whose members would not fit. Errors are Decode's.
func (p Patch) Apply(to Request) (Request, error) {
	if p.Names("runAt", "delayMs") {
		to.RunAt, to.Delay = nil, 0
	}
	document, err := to.document(p.replacesPolicy(to))
	if err != nil {
		return Request{}, err
	}
	merged, err := p.root.appendMerged(make([]byte, 0, len(document)+mergedRoom), document)
	if err != nil {
		return Request{}, fmt.Errorf("merge a patch into a request: %w", err)
	}
	if len(merged) > MaxJobBytes+mergedRoom {
		return Request{}, checkSize(merged)
	}
	return decode(merged, nil, to.Inputs)
}

// replacesPolicy reports whether the patch has a retryPolicy of another type than a request.
func (p Patch) replacesPolicy(of Request) bool {
	for _, m := range p.root.members {
		if m.name != "retryPolicy" {
			continue
		}
		for _, field := range m.value.members {
			if field.name == "type" {
				return string(field.value.raw) != `"`+policyOf(of.RetryPolicy).Type+`"`
			}
		}
	}
	return false
}

// appendMerged appends what the patch makes of a value of JSON; nil: there is none. All that the patch does not name
// stays as it was written, in its order.
func (v patchValue) appendMerged(dst []byte, target jsontext.Value) ([]byte, error) {
	if v.raw != nil {
		return append(dst, v.raw...), nil
	}
	named := make(map[string]patchValue, len(v.members))
	for _, m := range v.members {
		named[m.name] = m.value
	}
	dst = append(dst, '{')
	first := len(dst)
	member := func(name string, value patchValue, of jsontext.Value) (err error) {
		if value.raw.Kind() == 'n' {
			return nil
		}
		dst = appendName(dst, name, first)
		dst, err = value.appendMerged(dst, of)
		return err
	}
	err := eachMember(target, func(name string, value jsontext.Value) error {
		changed, ok := named[name]
		if !ok {
			dst = append(appendName(dst, name, first), value...)
			return nil
		}
		delete(named, name)
		return member(name, changed, value)
	})
	for _, m := range v.members {
		if _, left := named[m.name]; left && err == nil {
			err = member(m.name, m.value, nil)
		}
	}
	return append(dst, '}'), err
}

// appendName appends a member's name, after a comma where it is not the first of its object.
func appendName(dst []byte, name string, first int) []byte {
	if len(dst) > first {
		dst = append(dst, ',')
	}
	dst, err := jsontext.AppendQuote(dst, name)
	if err != nil {
		panic(fmt.Sprintf("write the name %q: %v", name, err)) // the decoder has found it sound
	}
	return append(dst, ':')
}

// eachMember visits the members of a value that is an object; another value has none.
func eachMember(value jsontext.Value, visit func(name string, value jsontext.Value) error) error {
	if value.Kind() != '{' {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		member, err := d.ReadValue()
		if err == nil {
			err = visit(name, member)
		}
		if err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// Again is what a job asks for that does once more what r asked for: at once, under no idempotency key, in no batch,
// and after no job but those of its ordering key or singleton key. It is a job of its own, whether or not the old one
// was unique or debounced.
func (r Request) Again() Request {
	r.IdempotencyKey, r.RunAt, r.Delay, r.ExpiresAt, r.After, r.RunAnyway = "", nil, 0, nil, nil, false
	r.BatchID, r.Unique, r.Debounce, r.Conditions, r.Element = uuid.Nil, nil, nil, nil, nil
	return r
}

// InNextRun is what a job of a flow asks for that does once more what the job old asked for in another run of the flow,
// in which the jobs that it names have the ids of idNow. Instants that have passed do not count any more, and what a
// fan-out had put aside is its own again.
func (r Request) InNextRun(old uuid.UUID, now time.Time, idNow func(uuid.UUID) uuid.UUID) Request {
	r.RunAgainOf = old
	if r.RunAt != nil && !r.RunAt.After(now) {
		r.RunAt = nil
	}
	if r.ExpiresAt != nil && !r.ExpiresAt.After(r.DueAt(now)) {
		r.ExpiresAt = nil
	}
	r.After, r.Inputs = slices.Clone(r.After), slices.Clone(r.Inputs)
	for i := range r.After {
		r.After[i] = idNow(r.After[i])
	}
	for i := range r.Inputs {
		r.Inputs[i].JobID = idNow(r.Inputs[i].JobID)
	}
	if r.ForEach == nil {
		return r
	}
	each := *r.ForEach
	r.OrderingKey, r.CallbackURL, r.Policies = each.OrderingKey, each.CallbackURL, each.Policies
	r.ForEach = &ForEach{Name: each.Name, JobID: idNow(each.JobID), Path: each.Path}
	if r.Inputs == nil {
		r.Inputs = []jobevent.Input{} // its payload is checked when it has its element
	}
	return r
}

// document is a request as a client would write it, with the defaults that hold for it. The payload stays as it is.
func (r Request) document(withoutPolicy bool) (jsontext.Value, error) {
	document := append([]byte(`{"payload":`), r.Payload...)
	for i := range members {
		m := &members[i]
		if m.write == nil || m.name == "payload" || withoutPolicy && m.name == "retryPolicy" {
			continue
		}
		value := m.write(&r)
		if value == nil {
			continue
		}
		written, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("write a request: %w", err)
		}
		document = append(appendName(document, m.name, 1), written...)
	}
	return append(document, '}'), nil
}

func policyOf(policy *retrypolicy.Policy) retrypolicy.Policy {
	if policy == nil {
		return retrypolicy.Default
	}
	return *policy
}

// PolicyFields are the members of a retry policy of its type, those that are 0 too: left out they would get
// their defaults.
func PolicyFields(policy *retrypolicy.Policy) map[string]any {
	p := policyOf(policy)
	fields := map[string]any{"type": p.Type, "jitter": p.Jitter}
	switch p.Type {
	case retrypolicy.Exponential:
		fields["baseMs"], fields["capMs"] = p.BaseMs, p.CapMs
	case retrypolicy.Fixed:
		fields["delayMs"] = p.DelayMs
	case retrypolicy.List:
		fields["delaysMs"] = p.DelaysMs
	}
	return fields
}
