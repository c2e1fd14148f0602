package audit

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/auditstore"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

type entry struct {
	ID         string          `json:"id"`
	At         time.Time       `json:"at"`
	OwnerID    *string         `json:"ownerId"`
	Actor      string          `json:"actor"`
	Action     string          `json:"action"`
	Resource   *string         `json:"resource"`
	JobIDs     []uuid.UUID     `json:"jobIds"`
	RemoteAddr string          `json:"remoteAddr"`
	UserAgent  *string         `json:"userAgent"`
	TraceID    uuid.UUID       `json:"traceId"`
	Details    json.RawMessage `json:"details"`
}

type page struct {
	Entries    []entry `json:"entries"`
	NextCursor *string `json:"nextCursor"`
}

// List is GET /api/audit: pages by key. The cursor is the number of the last entry. An admin of an owner sees the
// entries about that owner, an admin of the installation all.
func (l *Log) List(c *gin.Context) error {
	q := edge.NewQuery(c)
	filter := auditstore.Filter{
		Owner: l.owner(c, &q), JobID: q.JobID("jobId"), Actor: q.One("actor"), Action: q.One("action"),
		Since: q.Instant("since"), Until: q.Instant("until"),
		Before: q.Number("cursor"), Limit: q.Integer("limit", edge.DefaultLimit, 1, edge.MaxLimit),
	}
	if err := q.Close("ownerId", "jobId", "actor", "action", "since", "until", "cursor", "limit"); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	found, more, err := l.Store.List(ctx, filter)
	if err != nil {
		return err
	}
	body := page{Entries: make([]entry, len(found))}
	for i, e := range found {
		body.Entries[i] = entry{
			ID: strconv.FormatInt(e.ID, 10), At: e.At.UTC(), OwnerID: jobview.Given(e.Owner), Actor: e.Actor, Action: e.Action,
			Resource: jobview.Given(e.Resource), JobIDs: e.JobIDs, RemoteAddr: e.RemoteAddr,
			UserAgent: jobview.Given(e.UserAgent), TraceID: e.TraceID, Details: e.Details,
		}
	}
	if more {
		body.NextCursor = &body.Entries[len(found)-1].ID
	}
	return edge.Answer(c, http.StatusOK, body)
}

// owner returns the owner whose entries are requested. Only the installation may read those of other owners.
func (l *Log) owner(c *gin.Context, q *edge.Query) apidb.Owner {
	whose := edge.OwnerOf(c)
	asked := q.One("ownerId")
	if asked == "" {
		return whose
	}
	if !whose.Sees(asked) {
		q.Bad("ownerId", "must be your own")
	}
	return apidb.OwnerOf(asked)
}
