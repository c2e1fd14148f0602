package audit

import (
	"cmp"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
)

const maxUserAgent = 200 // bytes; a longer one is truncated

// Entry returns the entry of a request that changes something; nil: authentication is off. The action follows from the
// route, the subject from the parameters of the path. A store completes the entry and inserts it with the change.
func Entry(c *gin.Context) *apidb.Audit { return newEntry(c, actions[route(c)]) }

// EntryOf is Entry with a resource that the path does not name and with details of the request. Both may be empty.
// Details never hold a payload.
func EntryOf(c *gin.Context, resource string, details json.RawMessage) (*apidb.Audit, error) {
	entry := Entry(c)
	if entry == nil {
		return nil, nil
	}
	entry.Resource = cmp.Or(resource, entry.Resource)
	var err error
	if len(details) > 0 {
		entry.Details, err = json.Marshal(details)
	}
	return entry, err
}

func route(c *gin.Context) string { return c.Request.Method + " " + c.FullPath() }

func newEntry(c *gin.Context, action string) *apidb.Audit {
	p := access.Of(c.Request.Context())
	if p.Anonymous || action == "" {
		return nil
	}
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

// Anyone is the actor of commands when authentication is off.
const Anyone = "client"

// Actor returns the author of a command as the history of a job shows it.
func Actor(c *gin.Context) string {
	if p := access.Of(c.Request.Context()); !p.Anonymous {
		return p.Actor
	}
	return Anyone
}
