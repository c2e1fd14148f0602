package gateway

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
)

// The forms of nextCursor. They stand in the contract, too.
var (
	idCursorForm       = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	numberCursorForm   = regexp.MustCompile(`^[1-9][0-9]{0,17}$`)
	deliveryCursorForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}[.]v[1-9][0-9]{0,17}$`)
	logCursorForm      = regexp.MustCompile(`^[1-9][0-9]{0,8}[.](0|[1-9][0-9]{0,8})$`)
	scheduleCursorForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,99}:[^\x00-\x1f\x7f-\x9f]{0,255}$`)
	keyCursorForm      = regexp.MustCompile(`^[a-z2-7]{12}$`)
)

// formed is a parameter's value, if it has the form.
func (q *query) formed(name string, form *regexp.Regexp) string {
	value := q.one(name)
	if value != "" && !form.MatchString(value) {
		q.bad(name, "must be the nextCursor of a page")
		return ""
	}
	return value
}

// cursor is the id of the last job on the page before.
func (q *query) cursor(name string) uuid.UUID {
	id, _ := parseID(q.formed(name, idCursorForm))
	return id
}

// number is the number of the last entry on the page before.
func (q *query) number(name string) int64 {
	n, _ := strconv.ParseInt(q.formed(name, numberCursorForm), 10, 64)
	return n
}

// deliveryCursor is the job of the last delivery on the page before, and its version.
func (q *query) deliveryCursor(name string) (uuid.UUID, int64) {
	job, version, _ := strings.Cut(q.formed(name, deliveryCursorForm), ".v")
	id, _ := parseID(job)
	n, _ := strconv.ParseInt(version, 10, 64)
	return id, n
}

// logPlace is where the page before begins.
func (q *query) logPlace(name string) apidb.LogPlace {
	attempt, line, _ := strings.Cut(q.formed(name, logCursorForm), ".")
	n, _ := strconv.ParseInt(attempt, 10, 32)
	at, _ := strconv.ParseInt(line, 10, 32)
	return apidb.LogPlace{Attempt: int32(n), Line: int32(at)}
}

// afterSchedule is where the page before has ended: name and owner, of which a name has no colon.
func (q *query) afterSchedule(name string) schedulestore.Key {
	schedule, owner, _ := strings.Cut(q.formed(name, scheduleCursorForm), ":")
	return schedulestore.Key{Name: schedule, OwnerID: &owner}
}
