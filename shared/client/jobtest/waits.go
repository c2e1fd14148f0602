package jobtest

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/client"
)

// wait is a wait of the job, as a gateway would keep it.
type wait struct {
	state client.WorkWaitState
	taken int // the index of its event, from 1; 0: none
}

// forever is how long a wait without a timeout may let the job sleep.
const forever = 30 * 24 * time.Hour

// Ask is a gateway's answer about waits of the job, by its Events and its Called.
func (j *Job) Ask(_ context.Context, waits []client.WorkWait) (answer client.WorkWaitAnswer, err error) {
	if j.waits == nil {
		j.waits = map[string]*wait{}
	}
	for _, asked := range waits {
		w := j.waits[asked.Name]
		if w == nil {
			w = &wait{state: client.WorkWaitState{Name: asked.Name, Status: client.WaitOpen}}
			if asked.Timeout > 0 {
				w.state.Until = time.Now().Add(asked.Timeout)
			}
			j.waits[asked.Name] = w
		}
		if w.state.Status == client.WaitOpen {
			if err := j.look(w, asked); err != nil {
				return answer, err
			}
		}
		if w.state.Status == client.WaitOpen {
			left := forever
			if !w.state.Until.IsZero() {
				left = time.Until(w.state.Until)
			}
			if answer.Delay == 0 || left < answer.Delay {
				answer.Delay = left
			}
		}
		answer.Waits = append(answer.Waits, w.state)
	}
	return answer, nil
}

func (j *Job) look(w *wait, asked client.WorkWait) error {
	switch {
	case asked.Job != nil:
		return j.call(w, *asked.Job)
	case j.receive(w, asked.Event):
	case !w.state.Until.IsZero() && !time.Now().Before(w.state.Until):
		w.state.Status = client.WaitTimedOut
	}
	return nil
}

func (j *Job) call(w *wait, request client.JobRequest) error {
	if w.state.Job == nil {
		w.state.Job = &client.CalledJob{JobID: uuid.Must(uuid.NewV7()).String(), Status: "PENDING"}
	}
	if j.Called == nil {
		return nil
	}
	output, ended, failed := j.Called(request)
	if !ended {
		return nil
	}
	job := *w.state.Job
	w.state.Status, w.state.Job = client.WaitDone, &job
	if failed != nil {
		job.Status, job.LastError = client.Failed, &client.Failure{ErrorCode: "TEST.FAILED", Message: failed.Error()}
		return nil
	}
	job.Status = client.Completed
	var err error
	if job.Output, err = json.Marshal(output); err != nil {
		return fmt.Errorf("write output of a call: %w", err)
	}
	return nil
}

// receive gives the wait the first event that fits and that no other wait has.
func (j *Job) receive(w *wait, asked *client.EventWait) bool {
	for i := range j.Events {
		if j.isTaken(i+1) || !fits(&j.Events[i], asked) {
			continue
		}
		w.taken, w.state.Status, w.state.Event = i+1, client.WaitDone, &j.Events[i]
		return true
	}
	return false
}

func (j *Job) isTaken(number int) bool {
	for _, w := range j.waits {
		if w.taken == number {
			return true
		}
	}
	return false
}

func fits(e *client.CloudEvent, asked *client.EventWait) bool {
	if e.Type != asked.Type || asked.Source != "" && e.Source != asked.Source ||
		asked.Subject != "" && e.Subject != asked.Subject {
		return false
	}
	var data any
	_ = json.Unmarshal(e.Data, &data) // data that is no JSON has no members
	for path, want := range asked.Match {
		if !reflect.DeepEqual(member(data, path), plain(want)) {
			return false
		}
	}
	return true
}

// missing is no JSON value.
type missing struct{}

func member(data any, path string) any {
	name, rest, nested := strings.Cut(path, ".")
	object, ok := data.(map[string]any)
	if !ok {
		return missing{}
	}
	if value, ok := object[path]; ok {
		return value
	}
	value, ok := object[name]
	switch {
	case !ok || !nested:
		return missing{}
	default:
		return member(value, rest)
	}
}

// plain returns a value as encoding/json reads it.
func plain(value any) (read any) {
	text, err := json.Marshal(value)
	if err != nil || json.Unmarshal(text, &read) != nil {
		return missing{}
	}
	return read
}
