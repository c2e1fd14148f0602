package jobevent

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// What appendJSON writes is read again by what stands where, in a tenth of the time that a decoder
// takes. Any other order, space or escape is a no, and the decoder's business.

func (c *Created) readJSON(b []byte) bool {
	r := quickReader{rest: b}
	r.literal(`{"jobId":`)
	c.JobID = r.id()
	r.literal(`,"traceId":`)
	c.TraceID = r.id()
	if r.has(`,"ownerId":`) {
		c.OwnerID = r.text()
	}
	r.literal(`,"jobType":`)
	c.JobType = r.text()
	r.literal(`,"queue":`)
	c.Queue = r.text()
	r.literal(`,"payload":`)
	c.Payload = r.raw()
	if r.has(`,"priority":`) {
		c.Priority = int(r.int())
	}
	r.literal(`,"maxRetryCount":`)
	c.MaxRetryCount = int(r.int())
	if r.has(`,"retryPolicy":`) {
		return false
	}
	r.literal(`,"timeoutMs":`)
	c.TimeoutMs = r.int()
	c.RunAt = r.instantIf(`,"runAt":`)
	r.literal(`,"createdAt":`)
	c.CreatedAt = r.instant()
	return r.ends()
}

func (run *Run) readJSON(b []byte) bool {
	r := quickReader{rest: b}
	r.literal(`{"jobId":`)
	run.JobID = r.id()
	r.literal(`,"attempt":`)
	run.Attempt = int(r.int())
	r.literal(`,"jobType":`)
	run.JobType = r.text()
	r.literal(`,"payload":`)
	run.Payload = r.raw()
	r.literal(`,"timeoutMs":`)
	run.TimeoutMs = r.int()
	r.literal(`,"rank":`)
	run.Rank = r.instant()
	run.Cancel = r.has(`,"cancel":true`)
	run.ExpiresAt = r.instantIf(`,"expiresAt":`)
	if r.has(`,"ownerId":`) {
		run.OwnerID = r.text()
	}
	return r.ends()
}

func (c *Completed) readJSON(b []byte) bool {
	r := quickReader{rest: b}
	r.literal(`{"jobId":`)
	c.JobID = r.id()
	r.literal(`,"attempt":`)
	c.Attempt = int(r.int())
	r.literal(`,"workerId":`)
	c.WorkerID = r.text()
	if r.has(`,"startedAt":`) {
		c.StartedAt = r.instant()
	}
	r.literal(`,"finishedAt":`)
	c.FinishedAt = r.instant()
	if r.has(`,"output":`) {
		c.Output = r.raw()
	}
	return r.ends()
}

func (s *RawStatus) readJSON(b []byte) bool {
	r := quickReader{rest: b}
	r.literal(`{"jobId":`)
	s.JobID = r.id()
	r.literal(`,"version":`)
	s.Version = r.int()
	r.literal(`,"status":`)
	s.Status.Status = r.text()
	r.literal(`,"attempt":`)
	s.Attempt = int(r.int())
	r.literal(`,"retryCount":`)
	s.RetryCount = int(r.int())
	s.NextRunAt = r.instantIf(`,"nextRunAt":`)
	s.CallbackDeadlineAt = r.instantIf(`,"callbackDeadlineAt":`)
	s.StartedAt = r.instantIf(`,"startedAt":`)
	s.FinishedAt = r.instantIf(`,"finishedAt":`)
	r.literal(`,"updatedAt":`)
	s.UpdatedAt = r.instant()
	if r.has(`,"blockedBy":`) || r.has(`,"lastError":`) {
		return false
	}
	if r.has(`,"output":`) {
		s.Output = r.raw()
	}
	r.literal(`,"history":`)
	if s.History = r.raw(); len(s.History) == 0 || s.History[0] != '[' {
		return false
	}
	return r.ends()
}

// quickReader takes an object apart from the left. After the first thing that is not as expected it
// gives only zero values, and ends says no.
type quickReader struct {
	rest []byte
	odd  bool
}

func (r *quickReader) fail() {
	r.odd, r.rest = true, nil
}

// ends says whether all was as expected and nothing follows.
func (r *quickReader) ends() bool {
	r.literal("}")
	return !r.odd && len(r.rest) == 0
}

// has takes the text if it comes next.
func (r *quickReader) has(text string) bool {
	if len(r.rest) < len(text) || string(r.rest[:len(text)]) != text {
		return false
	}
	r.rest = r.rest[len(text):]
	return true
}

func (r *quickReader) literal(text string) {
	if !r.has(text) {
		r.fail()
	}
}

// quoted takes a string without escapes, and gives it without its quotes.
func (r *quickReader) quoted() []byte {
	if len(r.rest) < 2 || r.rest[0] != '"' {
		r.fail()
		return nil
	}
	n := bytes.IndexByte(r.rest[1:], '"')
	if n < 0 {
		r.fail()
		return nil
	}
	text := r.rest[1 : n+1]
	r.rest = r.rest[n+2:]
	return text
}

func (r *quickReader) text() string {
	text := r.quoted()
	for _, c := range text {
		if c < ' ' || c == '\\' {
			r.fail()
			return ""
		}
	}
	if !utf8.Valid(text) {
		r.fail()
		return ""
	}
	return known(text)
}

// known spares a copy of the texts that most events share.
func known(text []byte) string {
	switch string(text) {
	case "SIMULATION":
		return "SIMULATION"
	case DefaultQueue:
		return DefaultQueue
	case "COMPLETED":
		return "COMPLETED"
	}
	return string(text)
}

func (r *quickReader) id() uuid.UUID {
	text := r.quoted()
	if len(text) != len(`00000000-0000-0000-0000-000000000000`) {
		r.fail()
		return uuid.Nil
	}
	id, err := uuid.ParseBytes(text)
	if err != nil {
		r.fail()
	}
	return id
}

func (r *quickReader) int() int64 {
	n := 0
	for n < len(r.rest) && (r.rest[n] >= '0' && r.rest[n] <= '9' || n == 0 && r.rest[n] == '-') {
		n++
	}
	digits := r.rest[:n]
	value, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || n > 1 && digits[0] == '0' || digits[0] == '-' && digits[1] == '0' {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return value
}

// instant takes one in UTC. time.Parse alone lets pass more than a decoder does.
func (r *quickReader) instant() time.Time {
	text := r.quoted()
	at, err := time.Parse(time.RFC3339, string(text))
	if n := len(text); err != nil || text[13] != ':' || text[n-1] != 'Z' || n > 20 && text[19] != '.' {
		r.fail()
		return time.Time{}
	}
	return at
}

func (r *quickReader) instantIf(name string) *time.Time {
	if !r.has(name) {
		return nil
	}
	at := r.instant()
	return &at
}

// anyNames: what a payload says twice is its handler's business, and looking for it costs as much as the rest.
var anyNames = jsontext.AllowDuplicateNames(true)

// raw takes a JSON value whole, and copies it: the event's data may be part of something larger.
func (r *quickReader) raw() json.RawMessage {
	n := valueLength(r.rest)
	if n == 0 || r.rest[0] <= ' ' || r.rest[n-1] <= ' ' || !jsontext.Value(r.rest[:n]).IsValid(anyNames) {
		r.fail()
		return nil
	}
	value := bytes.Clone(r.rest[:n])
	r.rest = r.rest[n:]
	return value
}

// valueLength is where the value at the beginning of b ends if it is JSON: 0 when nothing ends it.
func valueLength(b []byte) int {
	depth, inText := 0, false
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
			if !inText && depth == 0 {
				return i + 1
			}
		case inText:
		case c == '{' || c == '[':
			depth++
		case (c == '}' || c == ']' || c == ',') && depth == 0:
			return i // behind a number, true, false or null
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}
