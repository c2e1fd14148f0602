package jobspec

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// FromQuery makes a request of an event that is no job.submit.v1: the payload is its data as JSON,
// and the parameters, of the names and meanings of a request's members, say the rest: jobType,
// queue, priority, maxRetryCount, timeoutMs, delayMs, runAt, expiresAt, orderingKey, fairnessKey, keepBuild,
// onDependencyFailure, callbackUrl, batchId, tags and after (these two separated by commas, or repeated). Errors are
// Decode's.
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
	req := silent()
	names := make([]string, 0, len(q.values))
	for name := range q.values {
		names = append(names, name)
	}
	slices.Sort(names) // the same request, the same answer
	for _, name := range names {
		q.parameter(&req, name)
	}
	if _, ok := q.values["jobType"]; !ok {
		q.Add("jobType", "is required: only a job.submit event goes without")
	}
	if req.RunAt != nil && q.values.Has("delayMs") {
		q.Add("delayMs", bothTimes)
	}
	if q.values.Has("onDependencyFailure") && !q.values.Has("after") {
		q.Add("onDependencyFailure", onlyWithAfter)
	}
	return req
}

func (q *query) parameter(req *Request, name string) {
	switch name {
	case "jobType":
		req.JobType = q.checked(name, WrongJobType)
	case "queue":
		req.Queue = q.checked(name, WrongQueue)
	case "priority":
		req.Priority = int(q.integer(name, 0, MaxPriority))
	case "maxRetryCount":
		req.MaxRetryCount, req.Silent.MaxRetryCount = int(q.integer(name, 0, MaxRetryCount)), false
	case "timeoutMs":
		req.Timeout, req.Silent.Timeout = q.millis(name, time.Millisecond, MaxTimeout), false
	case "delayMs":
		req.Delay = q.millis(name, 0, MaxAhead)
	case "runAt":
		req.RunAt = q.instant(name)
	case "expiresAt":
		req.ExpiresAt = q.instant(name)
	case "orderingKey":
		req.OrderingKey = q.label(name)
	case "fairnessKey":
		req.FairnessKey = q.label(name)
	case "keepBuild":
		req.KeepBuild = q.boolean(name)
	case "after":
		req.After = q.after(name)
	case "onDependencyFailure":
		var wrong string
		req.RunAnyway, wrong = parseOnDependencyFailure(q.one(name))
		q.note(name, wrong)
	case "callbackUrl":
		req.CallbackURL = q.checked(name, checkCallbackURL)
	case "batchId":
		var wrong string
		req.BatchID, wrong = parseBatchID(q.one(name))
		q.note(name, wrong)
	case "tags":
		req.Tags = q.tags(name)
	default:
		q.Add(strictjson.Join("", name), "is not a known parameter")
	}
}

func (q *query) one(name string) string {
	if len(q.values[name]) > 1 {
		q.Add(name, "is given more than once")
	}
	return q.values.Get(name)
}

func (q *query) note(name, wrong string) {
	if wrong != "" {
		q.Add(name, wrong)
	}
}

func (q *query) checked(name string, check func(string) string) string {
	s := q.one(name)
	q.note(name, check(s))
	return s
}

func (q *query) integer(name string, least, most int64) int64 {
	n, err := strconv.ParseInt(q.one(name), 10, 64)
	if err != nil || n < least || n > most {
		q.Add(name, fmt.Sprintf("must be an integer from %d to %d", least, most))
	}
	return n
}

func (q *query) boolean(name string) bool {
	switch q.one(name) {
	case "true":
		return true
	case "false":
	default:
		q.Add(name, "must be true or false")
	}
	return false
}

func (q *query) instant(name string) *time.Time {
	t, wrong := strictjson.ParseInstant(q.one(name))
	q.note(name, wrong)
	return &t
}

func (q *query) label(name string) string {
	return q.checked(name, func(s string) string {
		switch {
		case utf8.RuneCountInString(s) > MaxKey:
			return fmt.Sprintf("must have at most %d characters", MaxKey)
		case !utf8.ValidString(s):
			return "must be UTF-8"
		}
		return strictjson.CheckLabel(s)
	})
}

func (q *query) after(name string) []uuid.UUID {
	texts := strings.Split(strings.Join(q.values[name], ","), ",")
	if len(texts) > MaxAfter {
		q.Add(name, fmt.Sprintf("must have at most %d entries, not %d", MaxAfter, len(texts)))
		return nil
	}
	list := idList{}
	for i, text := range texts {
		q.note(fmt.Sprintf("%s[%d]", name, i), list.add(text))
	}
	return list.ids
}

func (q *query) millis(name string, least, most time.Duration) time.Duration {
	return time.Duration(q.integer(name, least.Milliseconds(), most.Milliseconds())) * time.Millisecond
}

func (q *query) tags(name string) []string {
	tags := strings.Split(strings.Join(q.values[name], ","), ",")
	for i, tag := range tags {
		switch path := fmt.Sprintf("%s[%d]", name, i); {
		case i >= MaxTags:
			q.Add(name, fmt.Sprintf("must have at most %d entries, not %d", MaxTags, len(tags)))
			return nil
		case utf8.RuneCountInString(tag) > MaxTag:
			q.Add(path, fmt.Sprintf("must have at most %d characters", MaxTag))
		case !utf8.ValidString(tag):
			q.Add(path, "must be UTF-8")
		case slices.Contains(tags[:i], tag):
			q.Add(path, "is there twice")
		default:
			q.note(path, strictjson.CheckLabel(tag))
		}
	}
	return tags
}
