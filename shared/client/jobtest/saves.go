package jobtest

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"sync"

	"github.com/jobweaver/jobweaver/shared/client/durable"
)

// saves are the saves of one attempt.
type saves struct {
	job *Job
	die context.CancelCauseFunc

	mu          sync.Mutex
	count       int
	died        bool
	checkpoints []json.RawMessage
	steps       []durable.Kept
}

func (s *saves) checkpoint(_ int64, data json.RawMessage) error {
	return s.save(func() { s.checkpoints, s.job.Saved = append(s.checkpoints, data), data })
}

// step stores a step unless the job has one of its name.
func (s *saves) step(step durable.Kept) (kept durable.Kept, err error) {
	err = s.save(func() {
		known := s.job.Step(step.Name)
		if known == nil {
			s.steps, s.job.Steps = append(s.steps, step), append(s.job.Steps, step)
			known = &step
		}
		kept = *known
	})
	return kept, err
}

func (s *saves) read(context.Context) ([]durable.Kept, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.job.Steps), nil
}

// save stores something, unless the attempt dies before.
func (s *saves) save(store func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.died {
		return durable.ErrOver
	}
	s.count++
	if s.count != s.job.DieBeforeSave {
		store()
	}
	if s.count == s.job.DieBeforeSave || s.count == s.job.DieAfterSave {
		s.died = true
		s.die(errDied)
		runtime.Goexit()
	}
	return nil
}
