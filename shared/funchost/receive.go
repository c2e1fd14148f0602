package funchost

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	typePing = "dev.knative.sources.ping"

	// maxRequests are handled at once; more wait their turn.
	maxRequests = 64
	// PublishPatience is PUBLISH_WAIT's default.
	PublishPatience = 5 * time.Second
	// pingPatience is how long one ping goes on ticking while the function has more to do.
	pingPatience = 10 * time.Second
)

// receive is POST / of a function on HTTP: one event, answered with an empty 202 when it is handled and
// what follows from it is published, or has taken PUBLISH_WAIT. A bad event is answered so that Knative does not
// send it again, trouble that is not its fault with 503, so that it does: never after the transaction, or a slow sink
// would bring the event again, and with it all that follows (knative A1).
func (h *host) receive(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	if err := fromElsewhere.Check(r); err != nil {
		h.answerError(ctx, w, event.Event{}, apierror.New(apierror.Forbidden, "%s", err))
		return
	}
	if !h.takeSeat(ctx) {
		h.answerError(ctx, w, event.Event{}, errBusy)
		return
	}
	defer func() { <-h.seats }()
	e, err := readEvent(w, r)
	if err == nil {
		if id := jobevent.TraceIDOf(e); id != [16]byte{} {
			ctx = telemetry.With(ctx, telemetry.FieldTraceID, id)
		}
		h.tracing.Hop(&e, r.Header)
		err = h.receiveEvent(ctx, e)
	}
	if err == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	h.answerError(ctx, w, e, err)
}

func (h *host) receiveEvent(ctx context.Context, e event.Event) error {
	if err := h.verifyHTTP(e); err != nil {
		return err
	}
	if e.Type() == typePing && h.f.Tick != nil {
		return h.ping(ctx)
	}
	if h.f.Handle == nil {
		return apierror.New(apierror.InvalidEvent, "%s handles no events of type %q", h.f.Name, e.Type())
	}
	say, err := h.settle(ctx, []event.Event{e}, func() bool { return true })
	if err != nil {
		return err
	}
	h.publishSoon(ctx, say)
	return nil
}

var errBusy = errors.New("too many events are being handled")

// takeSeat waits for a seat, no longer than an answer waits for the sink: nothing is done yet, and the caller comes
// again.
func (h *host) takeSeat(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.PublishWait)
	defer cancel()
	select {
	case h.seats <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// ping ticks, and again as long as the function asks for that at once: the next ping may be a minute
// away. One that comes while another one waits for its turn has nothing to add: that one's tick is still to come.
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
		say, next, err := h.callTick(ctx)
		if ctx.Err() == nil { // who does not wait for the end is no sign of trouble
			h.ticking.Note(ctx, err)
		} else if ticks > 0 {
			return nil // the rest is the next ping's
		}
		if err != nil {
			return err
		}
		if h.publishSoon(ctx, say); next > 0 {
			return nil
		}
	}
}

// answerError is the one place that turns an error into a status.
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
			append(telemetry.FieldsOf(e), "reason", label, "error", err)...)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(public.Status())
	_ = json.NewEncoder(w).Encode(map[string]any{ // to a client that has gone
		"status": public.Status(), "errorCode": public.Code, "message": public.Message,
	})
}
