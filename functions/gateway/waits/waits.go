// Package waits lets handlers of pull workers wait for events and for jobs that they call, and keeps their steps.
package waits

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/jobs"
	"github.com/jobweaver/jobweaver/functions/gateway/pullworkers"
	"github.com/jobweaver/jobweaver/functions/gateway/submit"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/pullwire"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// API has the endpoints at which handlers wait and save steps.
type API struct {
	Store  *waitstore.Store
	Pull   *pullworkers.API
	Submit *submit.API
	Jobs   *jobs.API
	Sealer *sealing.Sealer
}

type body struct {
	DelayMs *int64 `json:"delayMs"` // null: no wait is open
	Waits   []wait `json:"waits"`
}

type wait struct {
	Name   string           `json:"name"`
	Status waitstore.Status `json:"status"`
	Until  *time.Time       `json:"until"`
	Event  json.RawMessage  `json:"event,omitempty"`
	Job    *child           `json:"job,omitempty"`
}

type child struct {
	JobID     uuid.UUID       `json:"jobId"`
	Status    jobstate.Status `json:"status"`
	Output    json.RawMessage `json:"output"`
	LastError *jobevent.Error `json:"lastError"`
}

// Ask is POST /api/workers/wait: it keeps what the handler of an attempt waits for, makes the jobs that it calls, and
// answers how each wait stands.
func (a *API) Ask(c *gin.Context) error {
	var requests map[int]submit.Call
	asked, at, err := read(a, c, apibody.MaxWaitsBytes, func(body []byte) (apibody.WorkWaits, error) {
		asked, err := apibody.DecodeWorkWaits(body)
		if err == nil {
			requests, err = a.requests(c, asked.Waits)
		}
		return asked, err
	})
	if err != nil {
		return err
	}
	keep := make([]waitstore.Asked, len(asked.Waits))
	for i := range asked.Waits {
		if keep[i], err = a.asked(at.JobID, &asked.Waits[i]); err != nil {
			return err
		}
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	parent, waits, err := a.Store.Ask(ctx, at.Owner, at.JobID, at.Attempt, keep)
	switch {
	case errors.Is(err, waitstore.ErrOver):
		return apierror.New(apierror.AttemptOver, "%s", err)
	case errors.Is(err, waitstore.ErrFull):
		return edge.Invalid("waits", err.Error())
	case err != nil:
		return edge.OfJob(at.JobID, err)
	}
	if err := a.call(c, parent, waits, requests); err != nil {
		return err
	}
	answer, err := a.answer(ctx, parent, waits)
	if err != nil {
		return err
	}
	return edge.Answer(c, http.StatusOK, answer, pullwire.Unescaped)
}

// read reads a request about an attempt, and returns the attempt, whose lease it renews.
func read[T interface{ Of() apibody.OfAttempt }](
	a *API, c *gin.Context, most int64, decode func(body []byte) (T, error),
) (asked T, at pullworkers.Attempt, err error) {
	if asked, err = edge.ReadAs(c, most, decode); err != nil {
		return asked, at, err
	}
	at, err = a.Pull.AttemptOf(c, asked.Of())
	return asked, at, err
}

// requests checks the requests of the jobs that the handler calls, by the index of their wait.
func (a *API) requests(c *gin.Context, waits []apibody.WorkWait) (map[int]submit.Call, error) {
	calls := map[int]submit.Call{}
	for i := range waits {
		if waits[i].Job == nil {
			continue
		}
		if !access.Of(c.Request.Context()).May(access.Submit) {
			return nil, apierror.New(apierror.Forbidden, "a call makes a job: the API key needs the role %s, too", access.Submit)
		}
		call, err := a.Submit.DecodeCall(waits[i].Job)
		if err != nil {
			return nil, at(i, err)
		}
		calls[i] = call
	}
	return calls, nil
}

// at adds to an error in which wait it is.
func at(i int, err error) error { return apibody.AtJob(fmt.Sprintf("waits[%d].job", i), err) }

func (a *API) asked(job uuid.UUID, w *apibody.WorkWait) (waitstore.Asked, error) {
	asked := waitstore.Asked{Name: w.Name, Group: w.Group, Timeout: w.Timeout}
	if w.Event == nil {
		return asked, nil
	}
	event := waitstore.EventWait(*w.Event)
	asked.Event = &event
	text, err := jobevent.Encode(event)
	if err != nil {
		return asked, err
	}
	asked.Sealed = string(a.Sealer.Seal(sealing.OfJob(job, sealing.Wait), text))
	return asked, nil
}

// call makes the jobs of calls that have none yet.
func (a *API) call(c *gin.Context, parent waitstore.Parent, waits []waitstore.Wait, calls map[int]submit.Call) error {
	var made []jobstore.NewJob
	var of []int
	for i := range waits {
		if waits[i].EventType != "" || waits[i].Child != nil || waits[i].Status != waitstore.Open {
			continue
		}
		source, id := waitstore.ChildEvent(parent.JobID, waits[i].Name, waits[i].Run)
		job, err := a.Submit.Child(c, calls[i], parent, source, id)
		if err != nil {
			return at(i, err)
		}
		made, of = append(made, job), append(of, i)
	}
	accepted, err := a.Submit.Accept(c, audit.Entry(c), made)
	if err != nil {
		return err
	}
	for n := range accepted {
		if err := submit.Refusal(accepted[n]); err != nil {
			return at(of[n], err)
		}
		waits[of[n]].Child = &waitstore.Child{JobID: accepted[n].JobID, Status: accepted[n].Status()}
	}
	return nil
}

func (a *API) answer(ctx context.Context, parent waitstore.Parent, waits []waitstore.Wait) (body, error) {
	shown := body{Waits: make([]wait, len(waits))}
	events, err := a.Store.Events(ctx, waits)
	if err != nil {
		return shown, err
	}
	ends, err := a.Store.ChildEnds(ctx, parent.JobID, ended(waits))
	if err != nil {
		return shown, err
	}
	var delay time.Duration
	for i := range waits {
		w := &waits[i]
		shown.Waits[i] = wait{Name: w.Name, Status: w.Status, Until: jobview.UTC(w.Until)}
		switch {
		case w.Status == waitstore.Open:
			left := apibody.MaxWorkPause
			if w.Until != nil {
				left = min(left, max(time.Until(*w.Until), time.Millisecond))
			}
			delay = min(cmp.Or(delay, left), left)
		case w.Status == waitstore.Done && w.EventType != "":
			if shown.Waits[i].Event, err = a.open(w.EventNumber, events[w.EventNumber]); err != nil {
				return shown, err
			}
		}
		if w.EventType == "" {
			if shown.Waits[i].Job, err = a.child(ctx, w, ends); err != nil {
				return shown, err
			}
		}
	}
	if delay > 0 {
		ms := (delay + time.Millisecond - 1).Milliseconds()
		shown.DelayMs = &ms
	}
	return shown, nil
}

// ended returns the names of the waits whose children have ended.
func ended(waits []waitstore.Wait) (names []string) {
	for i := range waits {
		if c := waits[i].Child; c != nil && c.Status.Terminal() {
			names = append(names, waits[i].Name)
		}
	}
	return names
}

func (a *API) open(number uuid.UUID, sealed json.RawMessage) (json.RawMessage, error) {
	event, err := a.Sealer.Open(sealing.OfJob(number, sealing.Payload), sealed)
	if err != nil {
		return nil, apierror.New(apierror.Unavailable, "the event is sealed, and cannot be opened")
	}
	return event, nil
}

// child shows a job that the handler has called, with its result once it has ended.
func (a *API) child(ctx context.Context, w *waitstore.Wait, ends map[string]jobstore.Job) (*child, error) {
	shown := &child{JobID: w.Child.JobID, Status: w.Child.Status}
	if !w.Child.Status.Terminal() {
		return shown, nil
	}
	job := ends[w.Name]
	a.Jobs.Open(ctx, &job)
	if len(job.Sealed) > 0 {
		return nil, apierror.New(apierror.Unavailable, "the output of job %s is sealed, and cannot be opened", job.JobID)
	}
	shown.Output, shown.LastError = job.Snapshot.Output, job.Snapshot.LastError
	return shown, nil
}
