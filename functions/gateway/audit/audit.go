// Package audit records the changes that requests make in the audit log, also their reads if AUDIT_READS is true, and
// lists its entries.
package audit

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/auditstore"
)

// Log gives the endpoints access to the audit log.
type Log struct {
	Store *auditstore.Store
	Reads bool // record reads, too
}

// Show answers with the data of a read, after it has recorded the read.
func (l *Log) Show(c *gin.Context, body any) error {
	if err := l.EnterReading(c); err != nil {
		return err
	}
	return edge.Answer(c, http.StatusOK, body)
}

// EnterReading records the read of a request, if reads are recorded and its route is one of them.
func (l *Log) EnterReading(c *gin.Context) error {
	if !l.Reads {
		return nil
	}
	return l.enter(c, newEntry(c, reads[route(c)]))
}

// EnterReadingOfJob records that the response to a submit also shows the job.
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

// EnterReadingOfSecrets records that the webhook keys of an owner were read, whatever AUDIT_READS is. The owner sees
// the entry in its log.
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
