package funchost

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/batching"
	"github.com/jobweaver/jobweaver/shared/funchost/httpserver"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	typePing = "dev.knative.sources.ping"

	// maxRequests is how many requests are handled at once; further ones wait.
	maxRequests = 64
	// PublishPatience is PUBLISH_WAIT's default.
	PublishPatience = 5 * time.Second
	// pingPatience is how long one ping repeats the tick while the function has more to do.
	pingPatience = 10 * time.Second
)

// receive handles POST / of a function on HTTP. It takes one event, and answers with an empty 202 when the event is
// handled and the events that follow are published, or after PUBLISH_WAIT. An invalid event gets a status after which
// Knative does not send it again. A failure that is not due to the event gets a 503, after which Knative does, but
// never after the transaction has committed: otherwise a slow sink would make Knative send the event again, and all
// that follow would be published again.
func (h *host) receive(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	if err := httpserver.CrossOrigin.Check(r); err != nil {
		h.answerError(ctx, w, event.Event{}, apierror.New(apierror.Forbidden, "%s", err))
		return
	}
	if !h.takeSlot(ctx) {
		h.answerError(ctx, w, event.Event{}, errBusy)
		return
	}
	defer func() { <-h.slots }()
	e, err := readEvent(w, r)
	if err == nil {
		if id := jobevent.TraceIDOf(e); id != [16]byte{} {
			ctx = telemetry.With(ctx, telemetry.FieldTraceID, id)
		}
		err = h.receiveEvent(ctx, e, r.Header)
	}
	if err == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	h.answerError(ctx, w, e, err)
}

func (h *host) receiveEvent(ctx context.Context, e event.Event, header http.Header) error {
	if err := h.verifyHTTP(e); err != nil {
		return err
	}
	if e.Type() == typePing && h.f.Tick != nil {
		return h.ping(ctx)
	}
	if h.f.Handle == nil {
		return apierror.New(apierror.InvalidEvent, "%s handles no events of type %q", h.f.Name, e.Type())
	}
	items, err := jobevent.Unpack(e)
	if err != nil {
		h.reportRejected(ctx, e, err)
		return err
	}
	for i := range items {
		h.tracing.Hop(&items[i], header)
	}
	if jobevent.IsPacked(e) {
		return h.receivePacked(ctx, items)
	}
	err = h.handleShared(ctx, items)
	if neverBetter(err) {
		h.reportRejected(ctx, e, err)
	}
	return err
}

// reportRejected publishes that an event can never be handled. Knative also passes it to its dead-letter sink because
// of the answer, but without the reason and the topic.
func (h *host) reportRejected(ctx context.Context, e event.Event, cause error) {
	if about, ok := rejectedOverHTTP(h.f.Name, e, rejectedLabel(cause)+": "+cause.Error()); ok {
		h.publishSoon(ctx, []jobevent.Item{about})
	}
}

// rejectedLabel returns the label for a permanent error of Handle.
func rejectedLabel(err error) string {
	if isPanic(err) {
		return telemetry.RejectedPanic
	}
	return telemetry.RejectedInvalid
}

// receivePacked handles the items of an event. It rejects each item that can never be handled by itself, before it
// answers: the answer concerns all items, so that Knative keeps none of them.
func (h *host) receivePacked(ctx context.Context, items []jobevent.Item) error {
	good := make([]jobevent.Item, 0, len(items))
	var rejected []jobevent.Item
	for _, it := range items {
		if it.Err != nil {
			rejected = append(rejected, h.rejectItem(ctx, it, telemetry.RejectedUndecodable, it.Err)...)
			continue
		}
		good = append(good, it)
	}
	events, more, err := h.settleApart(ctx, good, h.handleShared(ctx, good))
	h.publishSoon(ctx, events)
	if err != nil {
		return err
	}
	if rejected = append(rejected, more...); len(rejected) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.PublishWait)
	defer cancel()
	return h.publisher.insist(ctx, rejected)
}

// settleApart handles items in halves if the error of a call for all of them is due to one of them. It returns the
// items that follow from the handled ones, even beside an error, and those that report items that can never be handled.
func (h *host) settleApart(
	ctx context.Context, items []jobevent.Item, err error,
) (events, rejected []jobevent.Item, _ error) {
	err = batching.Bisect(items, err, func(half []jobevent.Item) error {
		follow, err := h.settleOnce(ctx, half)
		events = append(events, follow...)
		return err
	}, isDue, func(one jobevent.Item, err error) error {
		rejected = append(rejected, h.rejectItem(ctx, one, rejectedLabel(err), err)...)
		return nil
	})
	return events, rejected, err
}

// rejectItem counts an item of an event over HTTP that can never be handled, and returns the item that reports it.
func (h *host) rejectItem(ctx context.Context, it jobevent.Item, label string, cause error) []jobevent.Item {
	alone := it.Alone()
	h.meter.Rejected(label)
	telemetry.Logger(ctx).WarnContext(ctx, "item of an event rejected",
		append(telemetry.FieldsOf(jobevent.ItemOf(alone)), "reason", label, "error", cause)...)
	h.httpKeys.Sign([]event.Event{alone})
	about, ok := rejectedOverHTTP(h.f.Name, alone, label+": "+cause.Error())
	if !ok {
		return nil
	}
	return []jobevent.Item{about}
}

var errBusy = errors.New("too many events are being handled")

// takeSlot waits until the request may be handled, no longer than an answer waits for the sink: the request has had no
// effect yet, and the client sends it again.
func (h *host) takeSlot(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.PublishWait)
	defer cancel()
	select {
	case h.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// ping ticks, and repeats the tick while the function asks for another one at once: the next ping may be a minute away.
// A ping that arrives while another one waits for its turn returns: the other one's tick is still to come.
func (h *host) ping(ctx context.Context) error {
	select {
	case h.pinged <- struct{}{}:
	default:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	err := h.takeTurn(ctx)
	<-h.pinged
	if err != nil {
		return err
	}
	defer h.endTurn()
	for ticks := 0; ; ticks++ {
		events, next, err := h.callTick(ctx)
		if ctx.Err() == nil { // a client that does not wait for the end is not a failure
			h.ticking.Note(ctx, err)
		} else if ticks > 0 {
			return nil // the next ping continues
		}
		if err != nil {
			return err
		}
		if h.publishSoon(ctx, events); next > 0 {
			return nil
		}
	}
}

// answerError is the only place that converts an error to a status.
func (h *host) answerError(ctx context.Context, w http.ResponseWriter, e event.Event, err error) {
	var public *apierror.Error
	switch {
	case errors.As(err, &public):
	case neverBetter(err) && e.Type() != typePing:
		public = apierror.New(apierror.InvalidEvent, "%s", cut(err.Error(), maxRejectedReason))
	default:
		public = apierror.New(apierror.Unavailable, "not now, try again")
		w.Header().Set("Retry-After", "1")
	}
	if public.Code != apierror.Unavailable {
		label := telemetry.RejectedInvalid
		if e.Context == nil {
			label = telemetry.RejectedUndecodable
		} else if isPanic(err) {
			label = telemetry.RejectedPanic
		} else if public.Code == apierror.Forbidden {
			label = telemetry.RejectedUnsigned
		}
		h.meter.Rejected(label)
		telemetry.Logger(ctx).WarnContext(ctx, "event rejected",
			append(telemetry.FieldsOf(jobevent.ItemOf(e)), "reason", label, "error", err)...)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(public.Status())
	_ = json.NewEncoder(w).Encode(map[string]any{ // fails if the client has gone
		"status": public.Status(), "errorCode": public.Code, "message": public.Message,
	})
}
