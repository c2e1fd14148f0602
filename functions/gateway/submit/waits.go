package submit

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// maxKeptBytes bounds the data of an event that handlers get: it becomes a part of an answer to them.
const maxKeptBytes = 256 << 10

type keptEventsBody struct {
	Events []client.EventKept `json:"events"`
}

// forWaits reports whether the events are for handlers that wait.
func (in *received) forWaits(params url.Values) (bool, error) {
	jobs := 0
	for _, e := range in.events {
		if e.Type() == jobevent.TypeSubmit || params.Has("jobType") {
			jobs++
		}
	}
	if jobs > 0 && jobs < len(in.events) {
		return false, apierror.New(apierror.InvalidEvent,
			"a batch has either events that submit jobs, of type %s or with ?jobType=, or events for handlers that wait",
			jobevent.TypeSubmit)
	}
	return jobs == 0 && len(in.events) > 0, nil
}

// keepEvents keeps events for the handlers that wait for them, now or later.
func (a *API) keepEvents(c *gin.Context, in received, params url.Values) error {
	owner, err := ownerOfEvents(params)
	if err != nil {
		return err
	}
	by := a.Requester(c)
	owner = by.Owner.Names(owner)
	kept := make([]waitstore.Event, len(in.events))
	for i, e := range in.events {
		if kept[i], err = a.keptOf(e, owner); err != nil {
			return in.at(i, err)
		}
	}
	receipts, err := a.Keep(c, kept)
	if err != nil {
		return err
	}
	if prefersReply(c.Request.Header) {
		c.Status(http.StatusAccepted)
		c.Writer.WriteHeaderNow()
		return nil
	}
	if !in.batch {
		return AnswerKept(c, kept[0].ID, receipts[0])
	}
	body := keptEventsBody{Events: make([]client.EventKept, len(receipts))}
	for i := range receipts {
		body.Events[i] = client.EventKept{EventID: kept[i].ID, Jobs: receipts[i].Jobs}
	}
	return edge.Answer(c, http.StatusAccepted, body)
}

// AnswerKept answers to an event that is kept. A header marks a repeated response.
func AnswerKept(c *gin.Context, id string, receipt waitstore.Receipt) error {
	status := http.StatusAccepted
	if receipt.Replayed {
		c.Header("Idempotent-Replayed", "true")
		status = http.StatusOK
	}
	return edge.Answer(c, status, client.EventKept{EventID: id, Jobs: receipt.Jobs})
}

// Keep stores events, and counts them as jobs for the limits of their sender.
func (a *API) Keep(c *gin.Context, events []waitstore.Event) ([]waitstore.Receipt, error) {
	if err := a.Limits.AllowJobs(c, len(events)); err != nil {
		return nil, err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	return a.Waits.Keep(edge.WithShare(ctx, c), audit.Entry(c), events)
}

// ownerOfEvents reads the parameters of a request with events that are for handlers.
func ownerOfEvents(params url.Values) (owner string, err error) {
	for name, values := range params {
		owner = values[0]
		if name != "ownerId" || len(values) != 1 || len(owner) > jobspec.MaxKey || strictjson.CheckLabel(owner) != "" {
			return "", apierror.New(apierror.InvalidEvent,
				"an event for handlers that wait takes no parameter but one ownerId; to submit a job it needs ?jobType=")
		}
	}
	return owner, nil
}

// keptOf returns an event as it is kept.
func (a *API) keptOf(e event.Event, owner string) (waitstore.Event, error) {
	if err := checkEvent(e); err != nil {
		return waitstore.Event{}, err
	}
	if jobstore.IsOurs(e.Source()) {
		return waitstore.Event{}, apierror.New(apierror.InvalidEvent, "the event's source is one of JobWeaver's own")
	}
	attributes, err := attributesOf(e)
	if err != nil {
		return waitstore.Event{}, err
	}
	return a.Kept(waitstore.Event{
		OwnerID: owner, Source: e.Source(), ID: e.ID(), Type: e.Type(), Subject: e.Subject(), Data: e.Data(),
	}, attributes)
}

// Kept completes an event with what is stored: its attributes and its data, sealed.
func (a *API) Kept(e waitstore.Event, attributes json.RawMessage) (waitstore.Event, error) {
	if len(e.Data) > maxKeptBytes {
		return e, apierror.New(apierror.PayloadTooLarge, "the data of an event for handlers has %d bytes, %d are allowed",
			len(e.Data), maxKeptBytes)
	}
	all := append([]byte{}, attributes[:len(attributes)-1]...)
	if len(e.Data) > 0 {
		all = append(append(all, `,"data":`...), e.Data...)
	}
	e.Number = a.DB.NewID()
	e.Sealed = a.Sealer.Seal(sealing.OfJob(e.Number, sealing.Payload), append(all, '}'))
	return e, nil
}
