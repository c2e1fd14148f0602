package kill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// shown is a job as the API shows it in the end.
type shown struct {
	JobID             string
	JobType           string
	Status            string
	Attempt           int
	RetryCount        int
	Version           int64
	Tags              []string
	CreatedAt         time.Time
	RunAt             *time.Time
	CancelRequestedAt *time.Time
	LastError         *struct{ ErrorCode, Message string }
	Output            json.RawMessage
	History           []shownMove
	Attempts          []shownAttempt

	raw json.RawMessage
}

type shownMove struct {
	At       time.Time
	From, To string
	Attempt  int
	By       string
	Reason   string
}

type shownAttempt struct {
	Attempt               int
	WorkerID              string
	StartedAt, FinishedAt *time.Time
	Outcome, ErrorCode    string
}

func (s *shown) terminal() bool {
	return slices.Contains([]string{completed, failed, canceled}, s.Status)
}

func (s *shown) key() string {
	if len(s.Tags) != 1 {
		return ""
	}
	return s.Tags[0]
}

// lost counts the attempts whose worker was lost.
func (s *shown) lost() (n int) {
	for _, a := range s.Attempts {
		if a.Outcome == "lost" {
			n++
		}
	}
	return n
}

// redriven counts the retries after its ends.
func (s *shown) redriven() (n int) {
	for _, m := range s.History {
		if (m.From == failed || m.From == canceled) && m.To == "PENDING" {
			n++
		}
	}
	return n
}

func (s *shown) attempt(number int) *shownAttempt {
	for i := range s.Attempts {
		if s.Attempts[i].Attempt == number {
			return &s.Attempts[i]
		}
	}
	return nil
}

// jobs reads every job: first the pages of the list, then each job whole.
func (h *fixture) jobs(ctx context.Context) (map[string]*shown, error) {
	ids, err := h.list(ctx, nil, time.Time{})
	if err != nil {
		return nil, err
	}
	all, errs := make(map[string]*shown, len(ids)), make([]error, len(ids))
	jobs := make([]*shown, len(ids))
	limit := make(chan struct{}, 8)
	var reads sync.WaitGroup
	for i, id := range ids {
		limit <- struct{}{}
		reads.Go(func() {
			defer func() { <-limit }()
			jobs[i], errs[i] = h.job(ctx, id)
		})
	}
	reads.Wait()
	for i, id := range ids {
		all[id] = jobs[i]
	}
	return all, errors.Join(errs...)
}

// list returns the ids of all jobs in some statuses, or in any, that were accepted until an instant, or at any time.
func (h *fixture) list(ctx context.Context, statuses []string, until time.Time) (ids []string, err error) {
	for job, err := range h.api.List(ctx, client.Filter{Status: statuses, Until: until}) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, job.JobID)
	}
	return ids, nil
}

func (h *fixture) job(ctx context.Context, id string) (*shown, error) {
	var s shown
	raw, err := h.api.Do(ctx, http.MethodGet, "/api/jobs/"+id, "", nil, &s)
	s.raw = raw
	return &s, err
}

// drain waits until every job has ended that was accepted until an instant, or at any time.
func (h *fixture) drain(ctx context.Context, until time.Time, within time.Duration) error {
	deadline, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		open, err := h.open(ctx, until)
		var answer *client.Error
		switch {
		case err == nil && len(open) == 0:
			return nil
		case errors.As(err, &answer) && answer.Status < http.StatusInternalServerError:
			return err
		}
		if !retry.Pause(deadline, 500*time.Millisecond) {
			return errors.Join(err, fmt.Errorf("after %s %d jobs have not ended: %v", within, len(open), first(open, 5)))
		}
	}
}

// open returns the jobs that have not ended. One list has all their statuses: a job whose attempt is lost goes back from
// RUNNING to SCHEDULED, and a list of each status could miss it.
func (h *fixture) open(ctx context.Context, until time.Time) ([]string, error) {
	return h.list(ctx, []string{"SCHEDULED", "PENDING", "QUEUED", "RUNNING", "WAITING", "RETRYING"}, until)
}

func first(list []string, n int) []string { return list[:min(n, len(list))] }
