package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/jobs"
	"github.com/jobweaver/jobweaver/functions/gateway/monitor"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// ShowJob returns a job in the form of a list entry. It drops the output, which the hub does not need afterwards.
func (a *API) ShowJob(ctx context.Context, job *jobstore.Changed) ([]byte, error) {
	a.Jobs.Open(ctx, &job.Job)
	data, err := json.Marshal(jobview.New(job.Job))
	if err != nil {
		return nil, fmt.Errorf("write job: %w", err)
	}
	job.Snapshot.Output = nil
	return data, nil
}

// logBody has new lines of a job's log.
type logBody struct {
	JobID  uuid.UUID        `json:"jobId"`
	Logs   []client.LogLine `json:"logs"`
	Sealed []string         `json:"sealed,omitempty"` // members that cannot be shown
}

// ShowLines returns the data of an event about new lines of a job's log.
func (a *API) ShowLines(ctx context.Context, id uuid.UUID, lines []logstore.Line) ([]byte, error) {
	return json.Marshal(logBody{JobID: id, Sealed: a.Jobs.OpenLines(ctx, id, lines), Logs: jobs.NewLogs(lines)})
}

// ReadStats returns an owner's statistics, and the part of them that is compared to find changes: all but the time of
// the read.
func (a *API) ReadStats(ctx context.Context, owner apidb.Owner) (shown, compared []byte, err error) {
	stats, err := a.Stats.Get(ctx, owner, "", "")
	if err != nil {
		return nil, nil, err
	}
	body := monitor.NewStats(&stats)
	if shown, err = json.Marshal(body); err != nil {
		return nil, nil, fmt.Errorf("write statistics: %w", err)
	}
	body.At, body.AsOf = time.Time{}, nil
	if body.OldestWaiting != nil {
		body.OldestWaiting.AgeMs = 0
	}
	compared, err = json.Marshal(body)
	return shown, compared, err
}
