package commandstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// JobChange holds the new values of a job that has not started. A trigger (migration 19) writes it into the job's row
// once the scheduler has applied it.
type JobChange struct {
	jobevent.Change
	Tags *[]string `json:"tags,omitempty"` // not known to the scheduler; nil: unchanged

	Hash  []byte         `json:"-"` // of the request, by which a repeated one is recognised
	Delay *time.Duration `json:"-"` // the delay to write in place of RunAt; nil: RunAt counts
	After int            `json:"-"` // the number of the last command when the request was checked
}

// ErrNotRead is returned when a job is no longer the one that the client has read.
var ErrNotRead error = apierror.New(apierror.PreconditionFailed,
	"the job has changed since it was read: read it again, and repeat the change")

// ErrChanged is returned when a job has had another command since the change was checked against it.
var ErrChanged = errors.New("the job had another command meanwhile")

// KeepChange is KeepCommand for a change. A different change is a different command. On ErrChanged the caller checks
// the change again.
func (s *Store) KeepChange(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, jobID uuid.UUID, change JobChange, by string,
) (Command, error) {
	return s.keep(ctx, entry, owner, Command{JobID: jobID, Command: jobevent.CommandChange, By: by, Change: &change}, nil)
}

// written returns the change as it is stored, with an instant instead of a delay; nil for no change.
func (c *JobChange) written(now time.Time) (json.RawMessage, error) {
	if c == nil {
		return nil, nil
	}
	if c.Delay != nil {
		at := now.Add(*c.Delay).UTC()
		c.RunAt, c.Delay = &at, nil
	}
	text, err := jobevent.Encode(c)
	if err != nil {
		return nil, fmt.Errorf("write a change: %w", err)
	}
	return text, nil
}
