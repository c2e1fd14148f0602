package edge

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// Query reads the parameters of a request and collects the errors in them.
type Query struct {
	Values url.Values
	Wrong  []apierror.Detail
}

// NewQuery reads the parameters of a request. A part that is not well formed is an error, as in 50% in place of 50%25:
// without it a list would have more than the client asked for.
func NewQuery(c *gin.Context) Query {
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	q := Query{Values: values}
	if err != nil {
		q.Bad("query", "cannot be read: %v", err)
	}
	return q
}

// Bad records an error in a parameter.
func (q *Query) Bad(name, format string, args ...any) {
	q.Wrong = append(q.Wrong, apierror.Detail{Path: name, Message: fmt.Sprintf(format, args...)})
}

// Close returns an error that lists all wrong parameters, including unknown ones.
func (q *Query) Close(known ...string) error {
	for name := range q.Values {
		if !slices.Contains(known, name) {
			other := jobspec.OtherName[name]
			if !slices.Contains(known, other) {
				other = ""
			}
			q.Bad(strings.ToValidUTF8(name, "?"), "is not a known parameter%s", strictjson.ItIs(other))
		}
	}
	if len(q.Wrong) == 0 {
		return nil
	}
	slices.SortStableFunc(q.Wrong, func(a, b apierror.Detail) int { return strings.Compare(a.Path, b.Path) })
	q.Wrong = q.Wrong[:min(len(q.Wrong), strictjson.MaxProblems)]
	return &apierror.Error{
		Code: apierror.InvalidJobRequest, Message: "invalid request: " + q.Wrong[0].Path + " " + q.Wrong[0].Message,
		Details: q.Wrong,
	}
}

// WithoutQuery refuses parameters where a path takes none: a client would not notice that one was ignored.
func WithoutQuery(handle func(*gin.Context) error) func(*gin.Context) error {
	return func(c *gin.Context) error {
		if c.Request.URL.RawQuery != "" {
			q := NewQuery(c)
			if err := q.Close(); err != nil {
				return err
			}
		}
		return handle(c)
	}
}

// One returns the value of a parameter; empty if it is absent.
func (q *Query) One(name string) string {
	values := q.Values[name]
	if len(values) == 0 {
		return ""
	}
	switch value := values[0]; {
	case len(values) > 1:
		q.Bad(name, "is given more than once")
	case value == "":
		q.Bad(name, "must not be empty")
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		q.Bad(name, "must be UTF-8 without NUL")
	default:
		return value
	}
	return ""
}

// Checked returns the value of a parameter if check accepts it.
func (q *Query) Checked(name string, check func(string) error) string {
	value := q.One(name)
	if value == "" {
		return value
	}
	if refused := (*apierror.Error)(nil); errors.As(check(value), &refused) {
		q.Bad(name, "%s", refused.Details[0].Message)
	}
	return value
}

// Label returns the value of a parameter that is no longer than a key.
func (q *Query) Label(name string) string {
	value := q.One(name)
	if utf8.RuneCountInString(value) > jobspec.MaxKey {
		q.Bad(name, "must have at most %d characters", jobspec.MaxKey)
	}
	return value
}

// Yes reports whether a parameter is true. It may only be true or absent.
func (q *Query) Yes(name string) bool {
	switch q.One(name) {
	case "":
	case "true":
		return true
	default:
		q.Bad(name, "must be true, or left out")
	}
	return false
}

// Integer returns a parameter from least to most, or otherwise if it is absent.
func (q *Query) Integer(name string, otherwise, least, most int) int {
	value := q.One(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		q.Bad(name, "must be an integer from %d to %d", least, most)
	}
	return n
}

// Instant returns an RFC 3339 parameter; nil if it is absent.
func (q *Query) Instant(name string) *time.Time {
	value := q.One(name)
	if value == "" {
		return nil
	}
	var at time.Time
	if err := at.UnmarshalText([]byte(value)); err != nil || at.Year() < 1970 {
		q.Bad(name, "must be an RFC 3339 instant from 1970 on, as 2026-11-22T08:00:00Z")
		return nil
	}
	return &at
}

// Statuses returns the states in a parameter that may be repeated.
func (q *Query) Statuses(name string) []jobstate.Status {
	statuses := make([]jobstate.Status, len(q.Values[name]))
	for i, value := range q.Values[name] {
		if statuses[i] = jobstate.Status(value); !statuses[i].Valid() {
			q.Bad(name, "%s", jobstate.Unknown(value))
		}
	}
	return statuses
}

// UUID returns a parameter that is a UUID; nil if it is absent.
func (q *Query) UUID(name string) *uuid.UUID {
	value := q.One(name)
	if value == "" {
		return nil
	}
	id, ok := ParseID(value)
	if !ok {
		q.Bad(name, "must be a UUID")
	}
	return &id
}

// ParseID reads a UUID in its canonical form; uuid.Parse accepts others, too.
func ParseID(text string) (id uuid.UUID, ok bool) {
	id, err := uuid.Parse(text)
	return id, err == nil && len(text) == len(uuid.Nil.String())
}

// JobID returns a parameter that is the id of a job.
func (q *Query) JobID(name string) uuid.UUID {
	value := q.One(name)
	if value == "" {
		return uuid.Nil
	}
	id, ok := ParseID(value)
	if !ok {
		q.Bad(name, "must be the id of a job")
	}
	return id
}

// Boolean returns a parameter that is true or false; nil if it is absent.
func (q *Query) Boolean(name string) *bool {
	value := q.One(name)
	if value == "" {
		return nil
	}
	if value != "true" && value != "false" {
		q.Bad(name, "must be true or false")
	}
	yes := value == "true"
	return &yes
}
