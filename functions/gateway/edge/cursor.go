package edge

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
)

// The forms of nextCursor. The contract has them, too.
var (
	idCursorForm       = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	numberCursorForm   = regexp.MustCompile(`^[1-9][0-9]{0,17}$`)
	deliveryCursorForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}[.]v[1-9][0-9]{0,17}$`)
	logCursorForm      = regexp.MustCompile(`^[1-9][0-9]{0,8}[.](0|[1-9][0-9]{0,8})$`)
	namedCursorForm    = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,99}:[^\x00-\x1f\x7f-\x9f]{0,255}$`)
	keyPlaceForm       = regexp.MustCompile(`^(0|[1-9][0-9]{0,17}):[^\x00-\x1f\x7f-\x9f]{0,255}$`)
	KeyCursorForm      = regexp.MustCompile(`^[a-z2-7]{12}$`)
)

// Formed returns a parameter's value if it has the form.
func (q *Query) Formed(name string, form *regexp.Regexp) string {
	value := q.One(name)
	if value != "" && !form.MatchString(value) {
		q.Bad(name, "must be the nextCursor of a page")
		return ""
	}
	return value
}

// Cursor returns the id of the last job on the page before.
func (q *Query) Cursor(name string) uuid.UUID {
	id, _ := ParseID(q.Formed(name, idCursorForm))
	return id
}

// Number returns the number of the last entry on the page before.
func (q *Query) Number(name string) int64 {
	n, _ := strconv.ParseInt(q.Formed(name, numberCursorForm), 10, 64)
	return n
}

// DeliveryCursor returns the job of the last delivery on the page before, and its version.
func (q *Query) DeliveryCursor(name string) (uuid.UUID, int64) {
	job, version, _ := strings.Cut(q.Formed(name, deliveryCursorForm), ".v")
	id, _ := ParseID(job)
	n, _ := strconv.ParseInt(version, 10, 64)
	return id, n
}

// LogPlace returns the place at which the page before begins.
func (q *Query) LogPlace(name string) logstore.Place {
	attempt, line, _ := strings.Cut(q.Formed(name, logCursorForm), ".")
	n, _ := strconv.ParseInt(attempt, 10, 32)
	at, _ := strconv.ParseInt(line, 10, 32)
	return logstore.Place{Attempt: int32(n), Line: int32(at)}
}

// KeyPlace returns the last fairness key of the page before, with its waiting jobs then; nil: this is the first page.
func (q *Query) KeyPlace(name string) *statstore.KeyCount {
	cursor := q.Formed(name, keyPlaceForm)
	if cursor == "" {
		return nil
	}
	waiting, key, _ := strings.Cut(cursor, ":")
	n, _ := strconv.ParseInt(waiting, 10, 64)
	return &statstore.KeyCount{Key: key, Waiting: n}
}

// Named returns the key of what the path and the parameter ownerId name.
func (q *Query) Named(c *gin.Context) apidb.Key {
	key := apidb.Key{Name: c.Param("name")}
	if owner := q.Checked("ownerId", apibody.CheckOwner); owner != "" {
		key.OwnerID = &owner
	}
	return key
}

// AfterKey returns the key at which the page before ends: name and owner, separated by a colon, which a name
// cannot contain.
func (q *Query) AfterKey(name string) apidb.Key {
	last, owner, _ := strings.Cut(q.Formed(name, namedCursorForm), ":")
	return apidb.Key{Name: last, OwnerID: &owner}
}
