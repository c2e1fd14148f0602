package audit

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
)

const maxUserAgent = 200 // bytes; what is longer is cut

// NewEntry makes the entry of a request.
func NewEntry(c *gin.Context, p access.Principal, action string) *apidb.Audit {
	entry := &apidb.Audit{
		Owner: p.Owner, Actor: p.Actor, Action: action, RemoteAddr: edge.RemoteAddr(c), TraceID: edge.TraceID(c),
		UserAgent: shorten(c.Request.UserAgent()),
	}
	if id, err := edge.JobID(c); err == nil {
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

// Detail adds what else was asked for to the request's entry, and what it is about where the path does not say.
func Detail(c *gin.Context, resource string, asked any) error {
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

// AnswerFor has the request's entry go with the jobs that it hands in: those of several requests are inserted together.
func AnswerFor(c *gin.Context, jobs []jobstore.NewJob) {
	if entry := apidb.AuditOf(c.Request.Context()); entry != nil {
		for i := range jobs {
			jobs[i].Audit = entry
		}
	}
}

// Anyone is the actor of commands while there is no authentication.
const Anyone = "client"

// Actor returns the author of a command as the history of a job shows it.
func Actor(c *gin.Context) string {
	if p := access.Of(c.Request.Context()); !p.Everyone {
		return p.Actor
	}
	return Anyone
}
