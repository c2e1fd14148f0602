package alertstore

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// Create stores a valid alert; ErrExists if its owner has one of that name.
func (s *Store) Create(ctx context.Context, entry *apidb.Audit, asked apibody.Alert, sealer *sealing.Sealer) (
	made Alert, err error,
) {
	if err := isHidden(asked.To); err != nil {
		return made, err
	}
	err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		entry.SetOwner(asked.OwnerID)
		var ok bool
		made.Alert, ok, err = insert(ctx, q, asked, sealer)
		if err == nil && !ok {
			err = ErrExists
		}
		return err
	})
	return made, apidb.Classify("create alert", err)
}

func insert(ctx context.Context, q *gen.Queries, asked apibody.Alert, sealer *sealing.Sealer) (
	row gen.Alert, ok bool, err error,
) {
	destination, err := seal(sealer, asked.Name, asked.OwnerID, asked.To)
	if err != nil {
		return row, false, err
	}
	rows, err := q.AlertInsert(ctx, newRow(asked, destination))
	if err != nil || len(rows) == 0 {
		return row, false, err
	}
	n, err := q.AlertsCount(ctx, gen.AlertsCountParams{OwnerID: asked.OwnerID, Most: MostOfOwner + 1})
	if err == nil && n > MostOfOwner {
		err = &apidb.TooManyError{What: "alerts", Most: MostOfOwner}
	}
	return rows[0], true, err
}

// Put stores a valid alert in place of the one with that name, if there is one. A destination as it is shown stays what
// it was. If match is not nil, it replaces only the alert that the client has read; else it returns ErrChanged.
func (s *Store) Put(
	ctx context.Context, entry *apidb.Audit, asked apibody.Alert, sealer *sealing.Sealer, match apidb.Match,
) (kept Alert, created bool, err error) {
	key, owner := apidb.Key{OwnerID: &asked.OwnerID, Name: asked.Name}, apidb.OwnerOf(asked.OwnerID)
	for range jobstore.InsertTries { // the existing alert may be gone when it is looked up
		err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
			entry.SetOwner(asked.OwnerID)
			if kept.Alert, created, err = insert(ctx, q, asked, sealer); err != nil {
				return err
			}
			switch {
			case created && match != nil:
				return ErrChanged
			case created:
				return isHidden(asked.To)
			}
			before, err := lock(ctx, q, owner, key)
			if err == nil && !match.Is(before.UpdatedAt) {
				err = ErrChanged
			}
			if err != nil {
				return err
			}
			kept.Alert, err = replace(ctx, q, before, asked, sealer)
			return err
		})
		if !errors.Is(err, ErrNone) {
			break
		}
	}
	if err != nil {
		return kept, false, apidb.Classify("put alert", err)
	}
	counted, err := s.counted(ctx, []gen.Alert{kept.Alert})
	return counted[0], created, apidb.Classify("count jobs of an alert", err)
}

func replace(ctx context.Context, q *gen.Queries, before gen.Alert, asked apibody.Alert, sealer *sealing.Sealer) (
	gen.Alert, error,
) {
	destination := before.Destination
	stored := Alert{Alert: before}
	if to, err := stored.Open(sealer); err != nil || !same(to.Shown(), asked.To) {
		if err := isHidden(asked.To); err != nil {
			return before, err
		}
		if destination, err = seal(sealer, before.Name, before.OwnerID, asked.To); err != nil {
			return before, err
		}
	}
	row := newRow(asked, destination)
	return q.AlertReplace(ctx, gen.AlertReplaceParams{
		AlertID: before.AlertID, JobType: row.JobType, Queue: row.Queue, ErrorCode: row.ErrorCode, Failures: row.Failures,
		Percent: row.Percent, WindowMinutes: row.WindowMinutes, QuietMinutes: row.QuietMinutes,
		Destination: row.Destination, Paused: row.Paused,
	})
}

func same(a, b jobspec.Destination) bool {
	return a.Webhook == b.Webhook && a.Slack == b.Slack && slices.Equal(a.Email, b.Email)
}

// isHidden refuses a URL without its path, as responses show it.
func isHidden(to jobspec.Destination) error {
	if shown := to.Shown(); to.URL() != "" && to.URL() == shown.URL() {
		return errHidden
	}
	return nil
}

// change locks an alert and applies a change, if it is the alert that the client has read; else it returns ErrChanged.
func (s *Store) change(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, key apidb.Key, match apidb.Match, what string,
	how func(q *gen.Queries, entry *apidb.Audit, row *gen.Alert) error,
) (changed Alert, err error) {
	err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		if changed.Alert, err = lock(ctx, q, owner, key); err != nil {
			return err
		}
		entry.SetOwner(changed.OwnerID)
		if !match.Is(changed.UpdatedAt) {
			return ErrChanged
		}
		return how(q, entry, &changed.Alert)
	})
	return changed, apidb.Classify(what+" alert", err)
}

// Delete deletes an alert and its notices. Its jobs stay.
func (s *Store) Delete(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, key apidb.Key, match apidb.Match,
) error {
	_, err := s.change(ctx, entry, owner, key, match, "delete",
		func(q *gen.Queries, _ *apidb.Audit, row *gen.Alert) error { return q.AlertDelete(ctx, row.AlertID) })
	return err
}

// Pause stops an alert until it is resumed, or resumes it. One that fires stops to when it is paused, without a notice.
func (s *Store) Pause(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, key apidb.Key, match apidb.Match, paused bool,
) (Alert, error) {
	changed, err := s.change(ctx, entry, owner, key, match, "pause",
		func(q *gen.Queries, _ *apidb.Audit, row *gen.Alert) (err error) {
			*row, err = q.AlertPause(ctx, gen.AlertPauseParams{AlertID: row.AlertID, Paused: paused})
			return err
		})
	if err != nil {
		return changed, err
	}
	counted, err := s.counted(ctx, []gen.Alert{changed.Alert})
	return counted[0], apidb.Classify("count jobs of an alert", err)
}

// Test sends a notice now, whether or not the alert fires or is paused. The job has to be published.
func (s *Store) Test(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, key apidb.Key, match apidb.Match, rules Rules,
) (created jobevent.Created, err error) {
	n := sending{store: s, rules: rules}
	_, err = s.change(ctx, entry, owner, key, match, "test",
		func(q *gen.Queries, entry *apidb.Audit, row *gen.Alert) error {
			counts, now, err := count(ctx, q, []gen.Alert{*row})
			if err != nil {
				return err
			}
			n.jobs, n.accepted, n.created = nil, nil, nil // the transaction may run again
			if err = n.send(ctx, q, row, jobspec.NoticeTest, counts[0], now); err != nil {
				return err
			}
			if entry != nil {
				entry.JobIDs = []uuid.UUID{n.created[0].JobID}
			}
			return nil
		})
	if err != nil {
		return created, err
	}
	s.jobs.CountAccepted(n.jobs, n.accepted)
	return n.created[0], nil
}
