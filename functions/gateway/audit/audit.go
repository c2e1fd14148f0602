// Package audit records in the audit log what requests change, and what they read if AUDIT_READS is true, and lists it.
package audit

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/auditstore"
)

// Log is the audit log as the endpoints use it.
type Log struct {
	Store *auditstore.Store
	Reads bool // record reads, too
}

// Show answers with what a request has read, after it has entered the reading.
func (l *Log) Show(c *gin.Context, body any) error {
	if err := l.EnterReading(c); err != nil {
		return err
	}
	c.JSON(http.StatusOK, body)
	return nil
}

// EnterReading enters the reading of a request, if readings are recorded and its route is one of them.
func (l *Log) EnterReading(c *gin.Context) error {
	if !l.Reads {
		return nil
	}
	return l.enter(c, newEntry(c, reads[route(c)]))
}

// EnterReadingOfJob enters that the answer to a request that submitted a job also shows it.
func (l *Log) EnterReadingOfJob(c *gin.Context, id uuid.UUID) error {
	if !l.Reads {
		return nil
	}
	entry := newEntry(c, actionRead)
	if entry != nil {
		entry.JobIDs = []uuid.UUID{id}
	}
	return l.enter(c, entry)
}

// EnterReadingOfSecrets enters that the keys of an owner's receivers were read, whatever AUDIT_READS is. The owner sees
// it in its log.
func (l *Log) EnterReadingOfSecrets(c *gin.Context, owner string) error {
	entry := newEntry(c, "webhook-secrets.read")
	if entry != nil {
		entry.Owner = owner
	}
	return l.enter(c, entry)
}

func (l *Log) enter(c *gin.Context, entry *apidb.Audit) error {
	if entry == nil {
		return nil
	}
	return l.Store.Enter(c.Request.Context(), entry)
}
