package apidb

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

// Audit is an entry of the audit log: who did what to which job, when and from where.
type Audit struct {
	ID         int64     // entries are numbered as they come
	At         time.Time // by the database's clock
	Owner      string    // whose things were touched
	Actor      string    // key:<id>, oidc:<subject> or bootstrap
	Action     string    // as job.cancel
	Resource   string    // what it was done to, if not to jobs: schedule/<name>
	JobIDs     []uuid.UUID
	RemoteAddr string
	UserAgent  string
	TraceID    uuid.UUID
	Details    json.RawMessage // what else was asked for; never a payload

	entered bool
}

type auditKey struct{}

// WithAudit has the first change of ctx enter it into the log, or fail. It is for one request that changes one
// thing; who handed in jobs stands in NewJob.
func WithAudit(ctx context.Context, entry *Audit) context.Context {
	return context.WithValue(ctx, auditKey{}, entry)
}

// AuditOf is what the next change of ctx is to be entered as; nil: nobody has to answer for it.
func AuditOf(ctx context.Context) *Audit {
	if entry, _ := ctx.Value(auditKey{}).(*Audit); entry != nil && !entry.entered {
		return entry
	}
	return nil
}

// AuditedTx is a transaction of a request, entered where somebody has to answer for it. It writes something in any
// case: a request that is answered without a change, as one that is repeated, must wait for the replicas like any
// other.
func AuditedTx(ctx context.Context, s *Store, fn func(q *gen.Queries) error) error {
	entry := AuditOf(ctx)
	if entry == nil {
		return s.Tx(ctx, func(q *gen.Queries) error {
			if err := fn(q); err != nil {
				return err
			}
			return q.AwaitReplicas(ctx)
		})
	}
	err := s.Tx(ctx, func(q *gen.Queries) error {
		if err := fn(q); err != nil {
			return err
		}
		return InsertAudit(ctx, q, []*Audit{entry})
	})
	entry.entered = err == nil
	return err
}

// SetAuditSubject sets what the entry is about, where only the transaction knows.
func SetAuditSubject(ctx context.Context, owner, resource string) {
	if entry := AuditOf(ctx); entry != nil {
		entry.Owner, entry.Resource = owner, resource
	}
}

// SetAuditJob sets which job the request has made, where only the transaction knows.
func SetAuditJob(ctx context.Context, job uuid.UUID) {
	if entry := AuditOf(ctx); entry != nil {
		entry.JobIDs = []uuid.UUID{job}
	}
}

// InsertAudit inserts entries within a transaction.
func InsertAudit(ctx context.Context, q *gen.Queries, entries []*Audit) error {
	var p gen.AuditInsertParams
	for _, e := range entries {
		ids := make([]string, len(e.JobIDs))
		for i, id := range e.JobIDs {
			ids[i] = id.String()
		}
		p.OwnerIDs = append(p.OwnerIDs, e.Owner)
		p.Actors = append(p.Actors, e.Actor)
		p.Actions = append(p.Actions, e.Action)
		p.Resources = append(p.Resources, e.Resource)
		p.JobIDs = append(p.JobIDs, "{"+strings.Join(ids, ",")+"}")
		p.RemoteAddrs = append(p.RemoteAddrs, e.RemoteAddr)
		p.UserAgents = append(p.UserAgents, e.UserAgent)
		p.TraceIDs = append(p.TraceIDs, e.TraceID)
		p.Details = append(p.Details, string(e.Details))
	}
	return q.AuditInsert(ctx, p)
}
