package auditstore

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/nullable"
)

// Enter inserts an entry about an action that changes nothing, such as reading a payload.
func (s *Store) Enter(ctx context.Context, entry *apidb.Audit) error {
	return apidb.Classify("enter into the audit log", apidb.InsertAudit(ctx, s.q, []*apidb.Audit{entry}))
}

// Filter narrows a list of the log. A zero field narrows nothing.
type Filter struct {
	Owner  apidb.Owner
	JobID  uuid.UUID
	Actor  string
	Action string
	Since  *time.Time
	Until  *time.Time
	Before int64 // the last entry of the previous page
	Limit  int
}

// List returns entries, newest first; more reports that others follow.
func (s *Store) List(ctx context.Context, f Filter) (entries []apidb.Audit, more bool, err error) {
	if f.Before == 0 {
		f.Before = math.MaxInt64
	}
	rows, err := s.listRows(ctx, f)
	if err != nil {
		return nil, false, apidb.Classify("list the audit log", err)
	}
	rows, more = apidb.Cut(rows, f.Limit)
	for _, r := range rows {
		entries = append(entries, apidb.Audit{
			ID: r.AuditID, At: r.At, Owner: r.OwnerID, Actor: r.Actor, Action: r.Action, Resource: r.Resource,
			JobIDs: r.JobIDs, RemoteAddr: r.RemoteAddr, UserAgent: r.UserAgent, TraceID: r.TraceID, Details: r.Details,
		})
	}
	return entries, more, nil
}

func (s *Store) listRows(ctx context.Context, f Filter) (rows []gen.AuditLog, err error) {
	all := gen.AuditListParams{
		Before: f.Before, Actor: nullable.Text(f.Actor), Action: nullable.Text(f.Action), Since: f.Since, Until: f.Until,
		MaxEntries: int32(f.Limit) + 1,
	}
	switch {
	case f.JobID != uuid.Nil:
		found, err := s.q.AuditListOfJob(ctx, gen.AuditListOfJobParams{
			JobID: f.JobID, Everyone: f.Owner.IsEveryone(), OwnerID: f.Owner.ID(), Before: all.Before, Actor: all.Actor,
			Action: all.Action, Since: all.Since, Until: all.Until, MaxEntries: all.MaxEntries,
		})
		for _, r := range found {
			rows = append(rows, gen.AuditLog(r))
		}
		return rows, err
	case f.Owner.IsEveryone():
		return s.q.AuditList(ctx, all)
	}
	return s.q.AuditListOfOwner(ctx, gen.AuditListOfOwnerParams{
		OwnerID: f.Owner.ID(), Before: all.Before, Actor: all.Actor, Action: all.Action, Since: all.Since,
		Until: all.Until, MaxEntries: all.MaxEntries,
	})
}

// MinAge is how long the database keeps entries at least, even if a function requests less.
const MinAge = 30 * 24 * time.Hour

// DeleteOld deletes up to limit entries older than age, the oldest first; more reports that others remain.
func (s *Store) DeleteOld(ctx context.Context, age time.Duration, limit int) (more bool, err error) {
	n, err := s.q.AuditForget(ctx, gen.AuditForgetParams{Age: age, MaxEntries: int32(limit)})
	return n == int64(limit), apidb.Classify("forget old entries of the audit log", err)
}
