package apidb

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

// Audit is an entry of the audit log. A method that takes one inserts it in the transaction of its change, or fails;
// it does not modify the caller's entry. A nil entry means a change without an author: authentication is off.
// Why one entry a request: docs/decisions/security.md#the-audit-log-has-one-entry-a-request-kept-for-30-days
type Audit struct {
	ID         int64     // in the order of insertion
	At         time.Time // by the database's clock
	Owner      string    // of the changed or read resource
	Actor      string    // key:<id>, oidc:<subject> or bootstrap
	Action     string    // for example job.cancel
	Resource   string    // schedule/<name> and the like; empty for jobs
	JobIDs     []uuid.UUID
	RemoteAddr string
	UserAgent  string
	TraceID    uuid.UUID
	Details    json.RawMessage // the rest of the request; never a payload
}

// SetSubject sets the owner and resource of an entry, where only the transaction knows them. The entry may be nil.
func (a *Audit) SetSubject(owner, resource string) {
	if a != nil {
		a.Owner, a.Resource = owner, resource
	}
}

// SetOwner sets the owner of what is changed, who may be another than the author's. The entry may be nil.
func (a *Audit) SetOwner(owner string) {
	if a != nil {
		a.Owner = owner
	}
}

// AuditedTx runs fn in a transaction, and inserts entry into the audit log if it is not nil. fn completes a copy of
// the entry, since the transaction may run again. The transaction always writes something: also a request that
// changes nothing, such as a repeated one, must wait for the replicas.
func AuditedTx(ctx context.Context, s *Store, entry *Audit, fn func(q *gen.Queries, entry *Audit) error) error {
	return s.Tx(ctx, func(q *gen.Queries) error {
		if entry == nil {
			if err := fn(q, nil); err != nil {
				return err
			}
			return q.AwaitReplicas(ctx)
		}
		completed := *entry
		if err := fn(q, &completed); err != nil {
			return err
		}
		return InsertAudit(ctx, q, []*Audit{&completed})
	})
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
