package apiload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Puller is a pull worker whose handlers do nothing.
type Puller struct {
	Name, JobType string
	Slots         int
	Wait          time.Duration // of a claim
	FirstWait     time.Duration // of its first one; 0: as the others
	Starts        *Starts       // where it records the starts of its handlers; nil: nowhere
}

// Starts holds the instants at which attempts reached pull workers, by job.
type Starts struct {
	mu sync.Mutex
	at map[string]time.Time
}

// At returns when a job's attempt arrived; zero: it has not.
func (s *Starts) At(id string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[id]
}

func (s *Starts) note(attempts []handed) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = map[string]time.Time{}
	}
	for _, a := range attempts {
		s.at[a.JobID] = now
	}
}

// handed is the part of an attempt that is read.
type handed struct {
	JobID string `json:"jobId"`
	Token string `json:"token"`
}

// Pull claims attempts and settles all of one answer as COMPLETED, until ctx ends.
func (a *API) Pull(ctx context.Context, p Puller) error {
	wait := p.FirstWait
	if wait == 0 {
		wait = p.Wait
	}
	for {
		err := a.pullOnce(ctx, p, wait)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("pull worker %s: %w", p.Name, err)
		}
		wait = p.Wait
	}
}

func (a *API) pullOnce(ctx context.Context, p Puller, wait time.Duration) error {
	const path = "/api/workers/claim"
	status, answer, err := a.send(ctx, http.MethodPost, path,
		fmt.Appendf(nil, `{"worker":%q,"types":[%q],"slots":%d,"wait":%q}`, p.Name, p.JobType, p.Slots, wait))
	switch {
	case err != nil:
		return err
	case status == http.StatusNoContent:
		return nil
	case status != http.StatusOK:
		return unexpected(http.MethodPost, path, status, answer)
	}
	var got struct {
		Attempts []handed `json:"attempts"`
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		return err
	}
	if p.Starts != nil {
		p.Starts.note(got.Attempts)
	}
	return a.settle(ctx, p.Name, got.Attempts)
}

func (a *API) settle(ctx context.Context, worker string, attempts []handed) error {
	var body strings.Builder
	fmt.Fprintf(&body, `{"worker":%q,"results":[`, worker)
	for i, one := range attempts {
		if i > 0 {
			body.WriteByte(',')
		}
		body.WriteString(`{"token":"` + one.Token + `","status":"COMPLETED"}`)
	}
	body.WriteString("]}")
	answer, err := a.call(ctx, http.MethodPost, "/api/workers/settle", []byte(body.String()), http.StatusOK)
	if err != nil {
		return err
	}
	if stored := strings.Count(string(answer), `"status":200`); stored != len(attempts) {
		return errors.New("a result was refused: " + string(answer[:min(len(answer), 500)]))
	}
	return nil
}
