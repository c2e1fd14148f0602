// Package alertstore stores alerts, compares them with the tallies, and makes the jobs that send their notices.
//
// Why notices are jobs: docs/decisions/api.md#a-notice-of-an-alert-is-a-job
package alertstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// Errors about alerts.
var (
	ErrNone    error = apierror.New(apierror.AlertNotFound, "there is no such alert")
	ErrExists  error = apierror.New(apierror.AlertExists, "there is an alert of this name already; PUT replaces it")
	ErrChanged error = apierror.New(apierror.PreconditionFailed,
		"the alert has changed since it was read, or is gone: read it again, and repeat the change")
	ErrSeveralOwners error = &apierror.Error{
		Code: apierror.InvalidJobRequest, Message: "invalid request: ownerId is required",
		Details: []apierror.Detail{{Path: "ownerId", Message: "is required: several owners have an alert of this name"}},
	}
)

// MostOfOwner is how many alerts an owner may have. Concurrent requests may exceed it a little.
const MostOfOwner = 100

// Alert is a row: a rule about failed jobs, and whether it fires.
type Alert struct {
	gen.Alert
	Count // in its window
}

// Count is how many jobs of an alert have failed and ended.
type Count struct{ Failed, Ended int64 }

// Store is safe for concurrent use. Its errors are classified as those of apidb.Store are.
type Store struct {
	db   *apidb.Store
	q    *gen.Queries
	jobs *jobstore.Store

	last uuid.UUID // the last alert that a pass has looked at; only Evaluate uses it
}

// New makes the store on a database.
func New(db *apidb.Store, jobs *jobstore.Store) *Store {
	return &Store{db: db, q: db.Queries(), jobs: jobs}
}

// seal returns the stored form of a destination.
func seal(sealer *sealing.Sealer, name, owner string, to jobspec.Destination) (json.RawMessage, error) {
	plain, err := json.Marshal(to)
	if err != nil {
		return nil, fmt.Errorf("write a destination: %w", err)
	}
	return sealer.Seal(sealing.OfAlert(name, owner), plain), nil
}

// Open returns where the alert's notices go.
func (a *Alert) Open(sealer *sealing.Sealer) (to jobspec.Destination, err error) {
	plain, err := sealer.Open(sealing.OfAlert(a.Name, a.OwnerID), a.Destination)
	if err != nil {
		return to, err
	}
	if err := json.Unmarshal(plain, &to); err != nil {
		return to, fmt.Errorf("read a destination: %w", err)
	}
	return to, nil
}

func find(ctx context.Context, q *gen.Queries, owner apidb.Owner, key apidb.Key) (gen.Alert, error) {
	key, seen := key.Of(owner)
	if !seen {
		return gen.Alert{}, ErrNone
	}
	rows, err := q.AlertsNamed(ctx, gen.AlertsNamedParams{Name: key.Name, OwnerID: key.OwnerID})
	if err != nil {
		return gen.Alert{}, err
	}
	return apidb.Named(rows, func(a *gen.Alert) string { return a.OwnerID }, ErrNone, ErrSeveralOwners)
}

// lock waits for a transaction that changes the alert.
func lock(ctx context.Context, q *gen.Queries, owner apidb.Owner, key apidb.Key) (gen.Alert, error) {
	found, err := find(ctx, q, owner, key)
	if err != nil {
		return found, err
	}
	row, err := q.AlertLock(ctx, found.AlertID)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNone
	}
	return row, err
}

// Get returns one alert; ErrNone if there is none, ErrSeveralOwners if there are two.
func (s *Store) Get(ctx context.Context, owner apidb.Owner, key apidb.Key) (Alert, error) {
	row, err := find(ctx, s.q, owner, key)
	if err != nil {
		return Alert{}, apidb.Classify("get alert", err)
	}
	counted, err := s.counted(ctx, []gen.Alert{row})
	return counted[0], apidb.Classify("count jobs of an alert", err)
}

// Filter chooses alerts, in the order of names and owners.
type Filter struct {
	OwnerID *string   // nil: all owners whose alerts the caller sees
	Firing  bool      // only those that fire
	After   apidb.Key // the last one of the previous page
	Limit   int
}

// List returns the matching alerts; more reports that others follow.
func (s *Store) List(ctx context.Context, owner apidb.Owner, f Filter) (list []Alert, more bool, err error) {
	key, seen := apidb.Key{OwnerID: f.OwnerID}.Of(owner)
	if !seen {
		return nil, false, nil
	}
	p := gen.AlertsListParams{OwnerID: key.OwnerID, AfterName: f.After.Name, MaxAlerts: int32(f.Limit + 1)}
	if f.After.OwnerID != nil {
		p.AfterOwner = *f.After.OwnerID
	}
	read := s.q.AlertsList
	if f.Firing {
		read = func(ctx context.Context, p gen.AlertsListParams) ([]gen.Alert, error) {
			return s.q.AlertsFiring(ctx, gen.AlertsFiringParams(p))
		}
	}
	rows, err := read(ctx, p)
	if err != nil {
		return nil, false, apidb.Classify("list alerts", err)
	}
	rows, more = apidb.Cut(rows, f.Limit)
	list, err = s.counted(ctx, rows)
	return list, more, apidb.Classify("count jobs of alerts", err)
}

// Notice is a notice that was sent.
type Notice gen.AlertNoticesListRow

// Notices returns the notices of an alert before one, the newest first; more reports that others follow.
func (s *Store) Notices(ctx context.Context, owner apidb.Owner, key apidb.Key, before uuid.UUID, limit int) (
	notices []Notice, more bool, err error,
) {
	row, err := find(ctx, s.q, owner, key)
	if err != nil {
		return nil, false, apidb.Classify("get alert", err)
	}
	rows, err := s.q.AlertNoticesList(ctx, gen.AlertNoticesListParams{
		AlertID: row.AlertID, BeforeID: before, MaxNotices: int32(limit + 1),
	})
	if err != nil {
		return nil, false, apidb.Classify("list notices", err)
	}
	rows, more = apidb.Cut(rows, limit)
	for _, row := range rows {
		notices = append(notices, Notice(row))
	}
	return notices, more, nil
}

func newRow(asked apibody.Alert, destination json.RawMessage) gen.AlertInsertParams {
	return gen.AlertInsertParams{
		AlertID: uuid.Must(uuid.NewV7()), OwnerID: asked.OwnerID, Name: asked.Name, JobType: asked.JobType,
		Queue: asked.Queue, ErrorCode: asked.ErrorCode, Failures: int32(asked.Failures), Percent: int32(asked.Percent),
		WindowMinutes: int32(asked.WindowMinutes), QuietMinutes: int32(asked.QuietMinutes),
		Destination: destination, Paused: asked.Paused,
	}
}
