package jobspec

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// FromQuery makes a request of an event that is no job.submit.v1: the payload is its data as JSON, and the parameters,
// of the names and meanings of a request's members, say the rest. Those of members that are objects or name the request
// are not known. tags and after are separated by commas, or repeated. Errors are Decode's.
func FromQuery(values url.Values, payload []byte) (Request, error) {
	if err := checkSize(payload); err != nil {
		return Request{}, err
	}
	q := query{values: values}
	req := q.request()
	req.Payload = payload
	q.AddAll(payloadProblems(payload, req))
	if err := q.Err("job request"); err != nil {
		return Request{}, err
	}
	return req, nil
}

func payloadProblems(payload []byte, req Request) strictjson.Problems {
	if len(payload) == 0 {
		return strictjson.Problems{{Path: "payload", Message: "is required: the event has no data"}}
	}
	if p := strictjson.Scan(payload, "payload"); p != nil {
		return p
	}
	if req.JobType == Simulation {
		return checkPayload(req)
	}
	r := newReader(payload, "payload")
	r.Raw()
	if p := r.Close(); p != nil {
		return p
	}
	return checkPayload(req)
}

// query reads parameters and notes what is wrong with them.
type query struct {
	strictjson.Problems
	values url.Values
}

func (q *query) request() Request {
	d := draft{Request: silent()}
	for _, name := range slices.Sorted(maps.Keys(q.values)) { // the same request, the same answer
		if m := memberOf[name]; m == nil || m.read == nil {
			q.Add(strictjson.Join("", name), "is not a known parameter"+strictjson.ItIs(OtherName[name]))
		} else {
			m.read(parameter{q, name}, &d)
		}
	}
	if !d.hasType {
		q.Add("jobType", "is required: only a job.submit event goes without")
	}
	if d.RunAt != nil && d.hasDelay {
		q.Add("delayMs", bothTimes)
	}
	if d.hasOnFailure && !d.hasAfter {
		q.Add("onDependencyFailure", onlyWithAfter)
	}
	return d.Request
}

// parameter is one of a query. It is the input of a member.
type parameter struct {
	*query

	name string
}

func (p parameter) one() string {
	if len(p.values[p.name]) > 1 {
		p.Add(p.name, "is given more than once")
	}
	return p.values.Get(p.name)
}

func (q *query) note(path, wrong string) {
	if wrong != "" {
		q.Add(path, wrong)
	}
}

func (p parameter) Checked(check func(string) string) string {
	s := p.one()
	p.note(p.name, check(s))
	return s
}

func (p parameter) Integer(least, most int64) int64 {
	n, err := strconv.ParseInt(p.one(), 10, 64)
	if err != nil || n < least || n > most {
		p.Add(p.name, fmt.Sprintf("must be an integer from %d to %d", least, most))
	}
	return n
}

func (p parameter) Boolean() bool {
	switch p.one() {
	case "true":
		return true
	case "false":
	default:
		p.Add(p.name, "must be true or false")
	}
	return false
}

func (p parameter) Instant() *time.Time {
	t, wrong := strictjson.ParseInstant(p.one())
	p.note(p.name, wrong)
	return &t
}

func (p parameter) Label(most int) string {
	return p.Checked(func(s string) string {
		switch {
		case utf8.RuneCountInString(s) > most:
			return fmt.Sprintf("must have at most %d characters", most)
		case !utf8.ValidString(s):
			return "must be UTF-8"
		}
		return strictjson.CheckLabel(s)
	})
}

func (p parameter) after() dependencies {
	texts := strings.Split(strings.Join(p.values[p.name], ","), ",")
	if len(texts) > MaxAfter {
		p.Add(p.name, fmt.Sprintf("must have at most %d entries, not %d", MaxAfter, len(texts)))
		return dependencies{}
	}
	var d dependencies
	for i, text := range texts {
		p.note(fmt.Sprintf("%s[%d]", p.name, i), d.add(text))
	}
	return d
}

func (p parameter) Millis(least, most time.Duration) time.Duration {
	return time.Duration(p.Integer(least.Milliseconds(), most.Milliseconds())) * time.Millisecond
}

func (p parameter) tags() []string {
	tags := strings.Split(strings.Join(p.values[p.name], ","), ",")
	for i, tag := range tags {
		switch path := fmt.Sprintf("%s[%d]", p.name, i); {
		case i >= MaxTags:
			p.Add(p.name, fmt.Sprintf("must have at most %d entries, not %d", MaxTags, len(tags)))
			return nil
		case utf8.RuneCountInString(tag) > MaxTag:
			p.Add(path, fmt.Sprintf("must have at most %d characters", MaxTag))
		case !utf8.ValidString(tag):
			p.Add(path, "must be UTF-8")
		case slices.Contains(tags[:i], tag):
			p.Add(path, "is there twice")
		default:
			p.note(path, strictjson.CheckLabel(tag))
		}
	}
	return tags
}
