package submit

import (
	"strings"
	"unicode"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/httpevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

const (
	maxEventBytes = jobspec.MaxJobBytes + 64<<10 // for a job and an envelope
	// maxIdentity bounds the length of source and id together, because an index entry holds both.
	maxIdentity = 2_000
)

// received holds the events of a request to /events.
type received struct {
	events []event.Event
	batch  bool
	data   bool // the data of an event is in the member of that name
}

// readEvents reads one event or a batch, in any of the three modes of CloudEvents.
func readEvents(c *gin.Context) (received, error) {
	media, err := edge.MediaType(c)
	if err != nil {
		return received{}, err
	}
	switch {
	case media == event.ApplicationCloudEventsBatchJSON:
		events, err := readBatch(c)
		return received{events: events, batch: true, data: true}, err
	case media == event.ApplicationCloudEventsJSON:
		body, err := edge.ReadBody(c, maxEventBytes)
		if err != nil {
			return received{}, err
		}
		e, err := httpevent.Structured(body)
		return received{events: []event.Event{e}, data: true}, invalid(err)
	case !strings.HasPrefix(media, "application/cloudevents") && c.GetHeader("Ce-Specversion") != "":
		body, err := edge.ReadBody(c, jobspec.MaxJobBytes)
		if err != nil {
			return received{}, err
		}
		e, err := httpevent.Binary(c.Request.Header, body)
		return received{events: []event.Event{e}}, invalid(err)
	}
	return received{}, apierror.New(apierror.UnsupportedMediaType,
		"%q is no CloudEvent: it takes %s, %s, or Ce- headers", media,
		event.ApplicationCloudEventsJSON, event.ApplicationCloudEventsBatchJSON)
}

func readBatch(c *gin.Context) ([]event.Event, error) {
	body, err := edge.ReadBody(c, jobspec.MaxBatchBytes)
	if err != nil {
		return nil, err
	}
	raws, err := httpevent.Batch(body)
	if err != nil {
		return nil, invalid(err)
	}
	if len(raws) > jobspec.MaxBatchJobs {
		return nil, apierror.New(apierror.PayloadTooLarge, "a batch may have at most %d events, this one has %d",
			jobspec.MaxBatchJobs, len(raws))
	}
	events := make([]event.Event, len(raws))
	for i, raw := range raws {
		if events[i], err = httpevent.Structured(raw); err != nil {
			in := received{events: events, batch: true}
			return nil, in.at(i, invalid(err))
		}
	}
	return events, nil
}

// invalid wraps an error as a refusal of the request; nil stays nil.
func invalid(err error) error {
	if err == nil {
		return nil
	}
	return apierror.New(apierror.InvalidEvent, "%s", err)
}

// checkEvent refuses a valid event that cannot be stored, or whose data is not JSON.
func checkEvent(e event.Event) error {
	identity := e.Source() + e.ID()
	switch {
	case len(identity) > maxIdentity:
		return apierror.New(apierror.InvalidEvent, "source and id may have at most %d bytes together", maxIdentity)
	case strings.ContainsFunc(identity, unicode.IsControl):
		return apierror.New(apierror.InvalidEvent, "source and id must not have control characters")
	case !httpevent.IsJSON(e):
		return apierror.New(apierror.InvalidEvent, "the data must be JSON, not %q", e.DataContentType())
	}
	return nil
}
