package jobstore

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// BatchLock returns the number of a batch's lock in the database: the random half of its id.
func BatchLock(id uuid.UUID) int64 { return int64(binary.BigEndian.Uint64(id[8:])) }

// The refusals of a job because of its batch.
var (
	errNoBatch     = ofBatch(apierror.New(apierror.BatchNotFound, "there is no such batch"))
	errBatchClosed = ofBatch(apierror.New(apierror.BatchClosed, "the batch is closed: it takes no more jobs"))
)

func ofBatch(e *apierror.Error) error {
	e.Details = []apierror.Detail{{Path: "batchId", Message: e.Message}}
	return e
}

// joinBatches refuses the jobs whose batches are closed or are not their owner's, and returns the others. Until the
// transaction ends, no batch is closed that a job joins.
func (t *dependents) joinBatches(ctx context.Context, open []int) ([]int, error) {
	var p gen.BatchesJoinedParams
	var locks []int64
	for _, i := range open {
		req := &t.jobs[i].Request
		if req.BatchID == uuid.Nil {
			continue
		}
		if !slices.Contains(p.BatchIDs, req.BatchID) {
			p.BatchIDs, locks = append(p.BatchIDs, req.BatchID), append(locks, BatchLock(req.BatchID))
		}
		if !slices.Contains(p.OwnerIDs, req.OwnerID) {
			p.OwnerIDs = append(p.OwnerIDs, req.OwnerID)
		}
	}
	if len(locks) == 0 {
		return open, nil
	}
	if err := t.q.BatchesShare(ctx, locks); err != nil {
		return nil, err
	}
	rows, err := t.q.BatchesJoined(ctx, p)
	if err != nil {
		return nil, err
	}
	found := make(map[uuid.UUID]*gen.BatchesJoinedRow, len(rows))
	for i := range rows {
		found[rows[i].BatchID] = &rows[i]
	}
	return slices.DeleteFunc(open, func(i int) bool {
		req, batch := &t.jobs[i].Request, found[t.jobs[i].Request.BatchID]
		switch {
		case req.BatchID == uuid.Nil:
		case batch == nil || batch.OwnerID != req.OwnerID:
			t.accepted[i].Late = errNoBatch
		case !batch.IsOpen:
			t.accepted[i].Late = errBatchClosed
		}
		return t.accepted[i].Late != nil
	}), nil
}
