package jobs

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
)

// searchTime is how long one request goes on to older jobs while it has found too few.
const searchTime = time.Second

// search reads one page of matching jobs. The store looks at a bounded number of jobs at once, so that no statement
// runs for long; where few of them match, search goes on from there until lasts has passed.
func search(
	ctx context.Context, store *jobstore.Store, owner apidb.Owner, filter jobstore.Filter, lasts time.Duration,
) (found []jobstore.Job, next uuid.UUID, err error) {
	for began := time.Now(); ; {
		part, next, err := store.ListJobs(ctx, owner, filter)
		if err != nil {
			return nil, next, err
		}
		found = append(found, part...)
		full := len(part) == filter.Limit || len(part) > 0 && part[len(part)-1].JobID == next // of jobs, or of bytes
		if full || next == uuid.Nil || filter.Skip > 0 || time.Since(began) >= lasts {
			return found, next, nil
		}
		filter.Before, filter.Limit = next, filter.Limit-len(part)
	}
}
