package submit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

type eventBody struct {
	JobID uuid.UUID `json:"jobId"`
}

type eventsBody struct {
	Jobs []eventResult `json:"jobs"`
}

type eventResult struct {
	ID    string    `json:"id"`
	JobID uuid.UUID `json:"jobId"`
}

// SubmitEvents is POST /events. An event of TypeSubmit, or with a jobType in the URL, becomes a job; any other is kept
// for handlers that wait for it. Either all events of a batch are accepted, or none. An event that can never be
// accepted is answered with 400, 413 or 415, after which Knative's dispatchers do not send it again.
func (a *API) SubmitEvents(c *gin.Context) error {
	in, err := readEvents(c)
	if err != nil {
		return err
	}
	params, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return apierror.New(apierror.InvalidEvent, "the query cannot be read: %v", err)
	}
	if err := edge.LoadOf(c).Reserve(int64(len(in.events) * resultBytes)); err != nil {
		return err
	}
	if waiting, err := in.forWaits(params); err != nil {
		return err
	} else if waiting {
		return a.keepEvents(c, in, params)
	}
	jobs, by := make([]jobstore.NewJob, len(in.events)), a.Requester(c)
	for i, e := range in.events {
		if jobs[i], err = a.jobOf(c.Request.Context(), e, params, by); err != nil {
			return in.at(i, err)
		}
	}
	accepted, err := a.acceptEvents(c, jobs)
	if missing := (*jobstore.MissingError)(nil); errors.As(err, &missing) {
		return in.at(missing.Job, NoJobs(missing.At))
	}
	if late := (*jobstore.LateError)(nil); errors.As(err, &late) {
		return in.at(late.Job, late.Why)
	}
	if err != nil {
		return err
	}
	if prefersReply(c.Request.Header) {
		c.Status(http.StatusAccepted)
		c.Writer.WriteHeaderNow()
		return nil
	}
	if !in.batch {
		return edge.Answer(c, http.StatusAccepted, eventBody{JobID: accepted[0].JobID})
	}
	body := eventsBody{Jobs: make([]eventResult, len(accepted))}
	for i, job := range accepted {
		body.Jobs[i] = eventResult{ID: in.events[i].ID(), JobID: job.JobID}
	}
	return edge.Answer(c, http.StatusAccepted, body)
}

// prefersReply reports whether the request has Prefer: reply. Knative's brokers send it, and treat any body of a 2xx
// that is no event as an error.
func prefersReply(header http.Header) bool {
	_, found := edge.Preference(header, "reply")
	return found
}

// jobOf makes a job of an event: of its data, or of its data and the parameters of the URL.
func (a *API) jobOf(ctx context.Context, e event.Event, params url.Values, by Requester) (jobstore.NewJob, error) {
	if err := checkEvent(e); err != nil {
		return jobstore.NewJob{}, err
	}
	if jobstore.IsOurs(e.Source()) {
		return jobstore.NewJob{}, apierror.New(apierror.InvalidEvent, "the event's source is one of JobWeaver's own")
	}
	asked := "" // the trace of the event if it is not that of the request
	if parent, ok := e.Extensions()[jobevent.ExtTraceParent].(string); ok {
		if id, ok := telemetry.TraceID(parent); ok && id != by.trace {
			by.trace, asked = id, parent
			by.sampled = telemetry.KeepsAsked(ctx, parent)
		}
	}
	req, err := requestOf(e, params)
	if err != nil {
		return jobstore.NewJob{}, err
	}
	if err := by.belong(&req); err != nil {
		return jobstore.NewJob{}, err
	}
	late, err := a.Validate(&req, true, by.check)
	if err != nil {
		return jobstore.NewJob{}, err
	}
	if req.Event, err = attributesOf(e); err != nil {
		return jobstore.NewJob{}, err
	}
	id := req.JobID
	if id == uuid.Nil {
		id = by.NewJobID()
	}
	job, err := a.newJob(id, req, by)
	job.EventSource, job.EventID, job.Late, job.TraceParent = e.Source(), e.ID(), late, asked
	return job, err
}

func requestOf(e event.Event, params url.Values) (jobspec.Request, error) {
	if e.Type() == jobevent.TypeSubmit {
		if len(params) > 0 {
			return jobspec.Request{}, apierror.New(apierror.InvalidEvent,
				"an event of type %s has the whole request in its data and takes no parameters", jobevent.TypeSubmit)
		}
		return jobspec.Decode(e.Data())
	}
	return jobspec.FromQuery(params, e.Data())
}

func (a *API) acceptEvents(c *gin.Context, jobs []jobstore.NewJob) ([]jobstore.Accepted, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if err := a.Limits.AllowJobs(c, len(jobs)); err != nil {
		return nil, err
	}
	entry := audit.Entry(c)
	for i := range jobs {
		jobs[i].Audit = entry
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	accepted, err := a.Store.InsertAllJobs(edge.WithShare(ctx, c), jobs)
	if errors.Is(err, apidb.ErrConflict) { // after a 409, the sender would repeat it
		return nil, apierror.New(apierror.InvalidEvent, "an %s", apidb.ErrConflict)
	}
	if err != nil {
		return nil, err
	}
	return accepted, a.Publish(ctx, jobs, accepted)
}

// at adds to an error which event of the batch, and which place in the event, it is about.
func (in *received) at(i int, err error) error {
	var known *apierror.Error
	if !errors.As(err, &known) {
		return err
	}
	where := ""
	if in.batch {
		where = fmt.Sprintf("[%d].", i)
	}
	if in.data && in.events[i].Type() == jobevent.TypeSubmit {
		where += "data."
	}
	moved := apierror.Error{Code: known.Code, Message: known.Message}
	if known.Code == apierror.BatchNotFound || known.Code == apierror.BatchClosed || known.Code == apierror.JobDeleted {
		moved.Code = apierror.InvalidEvent // after another status the sender would repeat it
	}
	if in.batch {
		moved.Message = fmt.Sprintf("event %d: %s", i, known.Message)
	}
	for _, d := range known.Details {
		moved.Details = append(moved.Details, apierror.Detail{
			Path: strings.TrimSuffix(where+d.Path, "."), Message: d.Message,
		})
	}
	return &moved
}
