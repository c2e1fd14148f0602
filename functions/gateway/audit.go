package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/auditstore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// actions names what the audit log has of each route that changes something. What is no job is named by the
// path's parameters.
var actions = map[string]string{
	"POST /api/jobs":                                  actionSubmit,
	"POST /api/jobs/batch":                            actionSubmit,
	"POST /events":                                    actionSubmit,
	"POST " + hookPath:                                "hook.submit",
	"POST /api/jobs/:jobId/cancel":                    "job.cancel",
	"POST /api/jobs/:jobId/retry":                     "job.retry",
	"POST /api/jobs/:jobId/reschedule":                "job.reschedule",
	"PATCH /api/jobs/:jobId":                          "job.change",
	"POST /api/jobs/:jobId/run-again":                 "job.run-again",
	"DELETE /api/jobs/:jobId":                         "job.delete",
	"POST /api/jobs/:jobId/deliveries/:version/retry": "delivery.retry",
	"POST /api/operations":                            "operation.create",
	"POST /api/operations/:operationId/abort":         "operation.abort",
	"POST /api/schedules":                             "schedule.create",
	"PUT /api/schedules/:name":                        "schedule.put",
	"DELETE /api/schedules/:name":                     "schedule.delete",
	"POST /api/schedules/:name/pause":                 "schedule.pause",
	"POST /api/schedules/:name/resume":                "schedule.resume",
	"POST /api/schedules/:name/run":                   "schedule.run",
	"PUT /api/controls/:kind/:name":                   "control.put",
	"DELETE /api/controls/:kind/:name":                "control.delete",
	"POST /api/controls/:kind/:name/pause":            "control.pause",
	"POST /api/controls/:kind/:name/resume":           "control.resume",
	"POST /api/keys":                                  "key.create",
	"DELETE /api/keys/:keyId":                         "key.revoke",
	"POST /api/keys/:keyId/rotate":                    "key.rotate",
	"POST /api/rejected/:rejectedId/redrive":          "rejected.redrive",
	"DELETE /api/rejected/:rejectedId":                "rejected.discard",
}

// reads names the routes that show payloads, outputs or log lines, which AUDIT_READS=true has in the log, too.
var reads = map[string]string{
	"GET /api/jobs":             actionList,
	"GET /api/jobs/dead":        actionList,
	"GET /api/jobs/:jobId":      "job.read",
	"GET /api/jobs/:jobId/logs": "job.logs",
	"GET /api/stream":           "job.stream",
	"GET /api/schedules":        "schedule.list",
	"GET /api/schedules/:name":  "schedule.read",
	"GET /api/workers":          "worker.list",

	"GET /api/rejected/:rejectedId": "rejected.read",
}

const (
	actionSubmit = "job.submit"
	actionList   = "job.list"

	maxUserAgent = 200 // bytes; what is longer is cut
)

// auditing has a request of somebody who is known answered for: what it changes is entered in the transaction
// that changes it, what it reads before it is shown.
func (f *Function) auditing(c *gin.Context, p access.Principal, handle func(*gin.Context) error) error {
	route := c.Request.Method + " " + c.FullPath()
	action, changes := actions[route]
	if !changes && f.cfg.AuditReads {
		action = reads[route]
	}
	if p.Everyone || action == "" {
		return handle(c)
	}
	entry := newEntry(c, p, action)
	if changes {
		c.Request = c.Request.WithContext(apidb.WithAudit(c.Request.Context(), entry))
	} else {
		c.Set(readingKey, entry)
	}
	return handle(c)
}

const readingKey = "reading"

// show answers with what a request has read. Where reads are entered, this one is, before.
func (f *Function) show(c *gin.Context, body any) error {
	if err := f.enterReading(c); err != nil {
		return err
	}
	c.JSON(http.StatusOK, body)
	return nil
}

func (f *Function) enterReading(c *gin.Context) error {
	entry, _ := c.Get(readingKey)
	if entry, ok := entry.(*apidb.Audit); ok {
		return f.store.auditLog.Enter(c.Request.Context(), entry)
	}
	return nil
}

func newEntry(c *gin.Context, p access.Principal, action string) *apidb.Audit {
	entry := &apidb.Audit{
		Owner: p.Owner, Actor: p.Actor, Action: action, RemoteAddr: edge.RemoteAddr(c), TraceID: edge.TraceID(c),
		UserAgent: shorten(c.Request.UserAgent()),
	}
	if id, err := jobID(c); err == nil {
		entry.JobIDs = []uuid.UUID{id}
	}
	kind, _, _ := strings.Cut(action, ".")
	for _, param := range c.Params {
		if param.Key != "jobId" && param.Key != "kind" {
			if kind == "control" {
				kind += "/" + c.Param("kind")
			}
			entry.Resource = kind + "/" + param.Value
		}
	}
	return entry
}

func shorten(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
	if len(text) <= maxUserAgent {
		return text
	}
	cut := maxUserAgent
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

// detail adds what else was asked for to the request's entry, and what it is about where the path does not say.
func detail(c *gin.Context, resource string, asked any) error {
	entry := apidb.AuditOf(c.Request.Context())
	if entry == nil {
		return nil
	}
	if resource != "" {
		entry.Resource = resource
	}
	var err error
	if asked != nil {
		entry.Details, err = json.Marshal(asked)
	}
	return err
}

// answerFor has the request's entry go with the jobs that it hands in: those of several requests are inserted together.
func answerFor(c *gin.Context, jobs []jobstore.NewJob) {
	if entry := apidb.AuditOf(c.Request.Context()); entry != nil {
		for i := range jobs {
			jobs[i].Audit = entry
		}
	}
}

// by is who commands, as the history of a job shows it.
func by(c *gin.Context) string {
	if p := access.Of(c.Request.Context()); !p.Everyone {
		return p.Actor
	}
	return anyone
}

type auditEntry struct {
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

type auditBody struct {
	Entries    []auditEntry `json:"entries"`
	NextCursor *string      `json:"nextCursor"`
}

// audit is GET /api/audit: pages by key. The cursor is the number of the last entry. An owner's admin sees what was
// done to the owner's things, the installation's what was done to all.
func (f *Function) audit(c *gin.Context) error {
	q := edge.Query{Values: c.Request.URL.Query()}
	filter := auditstore.Filter{
		Owner: f.auditOwner(c, &q), JobID: q.JobID("jobId"), Actor: q.One("actor"), Action: q.One("action"),
		Since: q.Instant("since"), Until: q.Instant("until"),
		Before: q.Number("cursor"), Limit: q.Integer("limit", defaultLimit, 1, maxLimit),
	}
	if err := q.Close("ownerId", "jobId", "actor", "action", "since", "until", "cursor", "limit"); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	found, more, err := f.store.auditLog.List(ctx, filter)
	if err != nil {
		return err
	}
	body := auditBody{Entries: make([]auditEntry, len(found))}
	for i, e := range found {
		body.Entries[i] = auditEntry{
			ID: strconv.FormatInt(e.ID, 10), At: e.At.UTC(), OwnerID: jobview.Given(e.Owner), Actor: e.Actor, Action: e.Action,
			Resource: jobview.Given(e.Resource), JobIDs: e.JobIDs, RemoteAddr: e.RemoteAddr,
			UserAgent: jobview.Given(e.UserAgent), TraceID: e.TraceID, Details: e.Details,
		}
	}
	if more {
		body.NextCursor = &body.Entries[len(found)-1].ID
	}
	c.JSON(http.StatusOK, body)
	return nil
}

// auditOwner is whose entries are asked for. What is not the request's own owner's only the installation sees.
func (f *Function) auditOwner(c *gin.Context, q *edge.Query) apidb.Owner {
	asked := q.One("ownerId")
	switch p := access.Of(c.Request.Context()); {
	case p.May(access.Installation) && asked == "":
		return apidb.Everyone
	case p.May(access.Installation), asked == p.Owner:
		return apidb.OwnerOf(asked)
	case asked != "":
		q.Bad("ownerId", "must be your own")
	}
	return edge.OwnerOf(c)
}
