// Package audit records in the audit log what requests change, and what they read if AUDIT_READS is true, and lists it.
package audit

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/auditstore"
)

// Log is the audit log as the endpoints use it.
type Log struct {
	Store *auditstore.Store
	Reads bool // record reads, too
}

// Auditing calls handle for a request. Its change is entered in the transaction that makes it; what it reads is
// entered before it is shown.
func (l *Log) Auditing(c *gin.Context, p access.Principal, handle func(*gin.Context) error) error {
	route := c.Request.Method + " " + c.FullPath()
	action, changes := actions[route]
	if !changes && l.Reads {
		action = reads[route]
	}
	if p.Everyone || action == "" {
		return handle(c)
	}
	entry := NewEntry(c, p, action)
	if changes {
		c.Request = c.Request.WithContext(apidb.WithAudit(c.Request.Context(), entry))
	} else {
		c.Set(readingKey, entry)
	}
	return handle(c)
}

const readingKey = "reading"

// Show answers with what a request has read, after it has entered the reading.
func (l *Log) Show(c *gin.Context, body any) error {
	if err := l.EnterReading(c); err != nil {
		return err
	}
	c.JSON(http.StatusOK, body)
	return nil
}

// EnterReading enters the reading of a request, if readings are recorded.
func (l *Log) EnterReading(c *gin.Context) error {
	entry, _ := c.Get(readingKey)
	if entry, ok := entry.(*apidb.Audit); ok {
		return l.Store.Enter(c.Request.Context(), entry)
	}
	return nil
}

// ReadsJob makes a request that submitted a job one that also reads it.
func (l *Log) ReadsJob(c *gin.Context, id uuid.UUID) {
	if p := access.Of(c.Request.Context()); l.Reads && !p.Everyone {
		entry := NewEntry(c, p, actionRead)
		entry.JobIDs = []uuid.UUID{id}
		c.Set(readingKey, entry)
	}
}
