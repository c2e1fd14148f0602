package alertstore

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

var errHidden error = &apierror.Error{
	Code: apierror.InvalidJobRequest, Message: "invalid alert: to is not whole",
	Details: []apierror.Detail{{Path: "to", Message: "must have the whole URL: responses show none of its path"}},
}

// sending makes the jobs of notices in a transaction.
type sending struct {
	store    *Store
	rules    Rules
	jobs     []jobstore.NewJob
	accepted []jobstore.Accepted
	created  []jobevent.Created
}

// send stores a notice of what was counted now, and inserts the job that sends it.
func (n *sending) send(
	ctx context.Context, q *gen.Queries, row *gen.Alert, state jobspec.NoticeState, c Count, now time.Time,
) error {
	stored := Alert{Alert: *row}
	to, err := stored.Open(n.rules.Sealer)
	if err != nil {
		return fmt.Errorf("open a destination: %w", err) // its key may not have reached this process yet
	}
	notice := jobspec.Notice{
		NoticeID: n.store.db.NewIDAt(now), At: now.UTC(), State: state, Alert: row.Name, OwnerID: nullable.Text(row.OwnerID),
		JobType: nullable.Text(row.JobType), Queue: nullable.Text(row.Queue), ErrorCode: nullable.Text(row.ErrorCode),
		Failures: int(row.Failures), WindowMinutes: int(row.WindowMinutes), Failed: c.Failed, Ended: c.Ended,
	}
	if row.FiringSince != nil && state != jobspec.NoticeTest {
		since := row.FiringSince.UTC()
		notice.Since = &since
	}
	if percent := int(row.Percent); percent > 0 {
		notice.Percent = &percent
	}
	req, err := jobspec.NewAlertJob(row.OwnerID, n.rules.Queues, jobspec.AlertPayload{To: to, Notice: notice})
	if err != nil {
		return err
	}
	n.jobs = []jobstore.NewJob{n.newJob(n.store.db.NewIDAt(now), req)}
	if n.accepted, err = jobstore.InsertInTx(ctx, q, n.jobs); err != nil {
		return fmt.Errorf("insert the job of a notice: %w", err)
	}
	if late := n.accepted[0].Late; late != nil {
		return late
	}
	n.created = []jobevent.Created{n.accepted[0].Created(n.jobs[0])}
	if err := q.AlertNoticeInsert(ctx, gen.AlertNoticeInsertParams{
		AlertID: row.AlertID, NoticeID: notice.NoticeID, State: string(state), Failed: c.Failed, Ended: c.Ended,
		JobID: n.created[0].JobID,
	}); err != nil {
		return fmt.Errorf("store a notice: %w", err)
	}
	return q.AlertNoticesForget(ctx, gen.AlertNoticesForgetParams{AlertID: row.AlertID, Kept: keptNotices})
}

func (n *sending) newJob(id uuid.UUID, req jobspec.Request) jobstore.NewJob {
	traceID := uuid.New()
	copy(traceID[:6], id[:6]) // the same millisecond, so that it needs no entry in jobs_of_trace
	id = jobevent.JobID(id, n.rules.KeepTrace == nil || n.rules.KeepTrace(traceID))
	req.Payload = n.rules.Sealer.Seal(sealing.OfJob(id, sealing.Payload), req.Payload)
	return jobstore.NewJob{JobID: id, TraceID: traceID, Request: req, Whose: apidb.Everyone}
}
