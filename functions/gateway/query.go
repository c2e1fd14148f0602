package gateway

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
)

// query reads a request's parameters and collects what is wrong with them.
type query struct {
	values url.Values
	wrong  []apierror.Detail
}

func (q *query) bad(name, format string, args ...any) {
	q.wrong = append(q.wrong, apierror.Detail{Path: name, Message: fmt.Sprintf(format, args...)})
}

// close says all that is wrong, parameters that are none of known among it.
func (q *query) close(known ...string) error {
	for name := range q.values {
		if !slices.Contains(known, name) {
			q.bad(strings.ToValidUTF8(name, "?"), "is not a known parameter")
		}
	}
	if len(q.wrong) == 0 {
		return nil
	}
	slices.SortStableFunc(q.wrong, func(a, b apierror.Detail) int { return strings.Compare(a.Path, b.Path) })
	q.wrong = q.wrong[:min(len(q.wrong), jobspec.MaxDetails)]
	return &apierror.Error{
		Code: apierror.InvalidJobRequest, Message: "invalid request: " + q.wrong[0].Path + " " + q.wrong[0].Message,
		Details: q.wrong,
	}
}

// bare refuses parameters where a path takes none: one that is ignored is a wish that nobody learns was not granted.
func bare(handle func(*gin.Context) error) func(*gin.Context) error {
	return func(c *gin.Context) error {
		if c.Request.URL.RawQuery != "" {
			q := query{values: c.Request.URL.Query()}
			if err := q.close(); err != nil {
				return err
			}
		}
		return handle(c)
	}
}

// one is a parameter's value; empty where it is not given.
func (q *query) one(name string) string {
	values := q.values[name]
	if len(values) == 0 {
		return ""
	}
	switch value := values[0]; {
	case len(values) > 1:
		q.bad(name, "is given more than once")
	case value == "":
		q.bad(name, "must not be empty")
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		q.bad(name, "must be UTF-8 without NUL")
	default:
		return value
	}
	return ""
}

// checked is a parameter's value, if check lets it pass.
func (q *query) checked(name string, check func(string) error) string {
	value := q.one(name)
	if value == "" {
		return value
	}
	if refused := (*apierror.Error)(nil); errors.As(check(value), &refused) {
		q.bad(name, "%s", refused.Details[0].Message)
	}
	return value
}

// label is a parameter's value of at most as many characters as a key has.
func (q *query) label(name string) string {
	value := q.one(name)
	if utf8.RuneCountInString(value) > jobspec.MaxKey {
		q.bad(name, "must have at most %d characters", jobspec.MaxKey)
	}
	return value
}

// yes is a parameter that is true, or not given.
func (q *query) yes(name string) bool {
	switch q.one(name) {
	case "":
	case "true":
		return true
	default:
		q.bad(name, "must be true, or left out")
	}
	return false
}

func (q *query) integer(name string, otherwise, least, most int) int {
	value := q.one(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		q.bad(name, "must be an integer from %d to %d", least, most)
	}
	return n
}

func (q *query) instant(name string) *time.Time {
	value := q.one(name)
	if value == "" {
		return nil
	}
	var at time.Time
	if err := at.UnmarshalText([]byte(value)); err != nil || at.Year() < 1970 {
		q.bad(name, "must be an RFC 3339 instant from 1970 on, as 2026-11-22T08:00:00Z")
		return nil
	}
	return &at
}

// statuses are the states of a parameter that may be there several times.
func (q *query) statuses(name string) []jobstate.Status {
	statuses := make([]jobstate.Status, len(q.values[name]))
	for i, value := range q.values[name] {
		if statuses[i] = jobstate.Status(value); !statuses[i].Valid() {
			q.bad(name, "%s", jobstate.Unknown(value))
		}
	}
	return statuses
}

func (q *query) uuid(name string) *uuid.UUID {
	value := q.one(name)
	if value == "" {
		return nil
	}
	id, ok := parseID(value)
	if !ok {
		q.bad(name, "must be a UUID")
	}
	return &id
}

// parseID reads a UUID in its one form: uuid.Parse takes others, too.
func parseID(text string) (id uuid.UUID, ok bool) {
	id, err := uuid.Parse(text)
	return id, err == nil && len(text) == len(uuid.Nil.String())
}
