package funchost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/eventkeys"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// publisher says events to the sink or to Kafka.
type publisher struct {
	meter   telemetry.Meter
	tracing *telemetry.Tracing
	over    string          // what carries the events
	keys    *eventkeys.Keys // nil: nothing is signed
	// send tries once, in any order, and tells which events were said.
	send    func(ctx context.Context, events []event.Event) (said []event.Event, err error)
	close   func()
	trouble telemetry.Trouble // of those who insist
}

// unsent is the error of a try after which only some events have to be said again.
type unsent struct {
	events []event.Event
	after  time.Duration // what the sink asked us to wait
	err    error
}

func (u *unsent) Error() string { return u.err.Error() }
func (u *unsent) Unwrap() error { return u.err }

// NewPublisher is the way on which a function's host says events, for those who are not hosted.
// Nothing connects before the first events.
func NewPublisher(cfg Config) (Publish, func(), error) {
	p, err := newPublisher(cfg, telemetry.NewMeter("unhosted"))
	if err != nil {
		return nil, nil, err
	}
	return p.publish, p.close, nil
}

func newPublisher(cfg Config, meter telemetry.Meter) (*publisher, error) {
	keys, err := cfg.signer()
	if err != nil {
		return nil, err
	}
	if cfg.Sink != "" {
		s, err := newSink(cfg, meter)
		if err != nil {
			return nil, err
		}
		return &publisher{
			meter: meter, over: telemetry.OverHTTP, keys: keys, send: s.send, close: s.close,
			trouble: telemetry.Trouble{What: "publish"},
		}, nil
	}
	producer, err := kafkaevent.NewProducer(cfg.Kafka)
	if err != nil {
		return nil, err
	}
	return &publisher{
		meter: meter, over: telemetry.OverKafka, keys: keys, close: producer.Close,
		trouble: telemetry.Trouble{What: "publish"},
		send: func(ctx context.Context, events []event.Event) ([]event.Event, error) {
			if err := producer.Publish(ctx, events); err != nil {
				return nil, err
			}
			return events, nil
		},
	}, nil
}

// Unpublished returns those of the events that still have to be published after a Publish returned err.
func Unpublished(events []event.Event, err error) []event.Event {
	if left := (*unsent)(nil); errors.As(err, &left) {
		return left.events
	}
	return events
}

// publish is a Publish. The status of a job of which the sink refused another event is held back: the API would show
// FAILED, nobody would ask again, and the dead letter would be lost (protocol #11). The API asks for the job as long as
// it has not seen that version, so both are published again until the sink takes them.
func (p *publisher) publish(ctx context.Context, events []event.Event) error {
	p.keys.Sign(events)
	rest := phases(events)
	for i := range rest {
		phase, began := rest[i], time.Now()
		if len(phase) == 0 {
			continue // all of it was held back
		}
		traced, done := p.tracing.Say(ctx, p.over, phase)
		said, err := p.send(ctx, traced)
		done(said, err)
		p.meter.Said(said, time.Since(began), err)
		if i+1 < len(rest) {
			rest[i+1] = withoutRefused(rest[i+1], phase, said, err)
		}
		if err == nil {
			continue
		}
		left := &unsent{err: err}
		if errors.As(err, &left) {
			phase = sameEvents(phase, left.events) // untraced: each try has a span beside the last one's, not below it
		}
		return &unsent{events: slices.Concat(append([][]event.Event{phase}, rest[i+1:]...)...), after: left.after, err: err}
	}
	return nil
}

// phases splits events so that each phase has to be acknowledged before the next is sent: the
// job-status of a job comes after whatever else is said of it, or somebody who has seen it would not
// ask for what got lost.
func phases(events []event.Event) [][]event.Event {
	others := map[string]bool{}
	for _, e := range events {
		if !isStatus(e) {
			others[e.Subject()] = true
		}
	}
	if n := len(others); len(events) > 0 && (n == 0 || n == len(events)) { // all are statuses, or none is
		return [][]event.Event{events}
	}
	var first, last []event.Event
	for _, e := range events {
		if isStatus(e) && others[e.Subject()] {
			last = append(last, e)
		} else {
			first = append(first, e)
		}
	}
	return slices.DeleteFunc([][]event.Event{first, last}, func(phase []event.Event) bool { return len(phase) == 0 })
}

// withoutRefused leaves out the statuses of the jobs of which something was refused: neither said, nor left for the
// next try.
func withoutRefused(statuses, phase, said []event.Event, err error) []event.Event {
	left := Unpublished(phase, err)
	if err == nil {
		left = nil
	}
	if len(said)+len(left) >= len(phase) {
		return statuses
	}
	settled := make(map[string]bool, len(said)+len(left))
	for _, e := range slices.Concat(said, left) {
		settled[e.ID()] = true
	}
	refused := map[string]bool{}
	for _, e := range phase {
		if !settled[e.ID()] {
			refused[e.Subject()] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(statuses), func(e event.Event) bool { return refused[e.Subject()] })
}

// sameEvents are those of events whose ids ofs have.
func sameEvents(events, ofs []event.Event) []event.Event {
	ids := make(map[string]bool, len(ofs))
	for _, e := range ofs {
		ids[e.ID()] = true
	}
	return slices.DeleteFunc(slices.Clone(events), func(e event.Event) bool { return !ids[e.ID()] })
}

// insist publishes until everything is acknowledged or ctx ends. What can never be published is
// logged and left out: it must not hold up everything behind it.
func (p *publisher) insist(ctx context.Context, events []event.Event) error {
	if len(events) == 0 {
		return nil // that nothing had to be said shows nothing
	}
	var wait backoff
	for {
		err := p.publish(ctx, events)
		if err == nil {
			p.trouble.Note(ctx, nil)
			return nil
		}
		left := &unsent{events: events}
		errors.As(err, &left)
		if errors.Is(err, jobevent.ErrInvalid) {
			return p.insistOnValid(ctx, left.events, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("give up publishing: %w", err)
		}
		p.trouble.Note(ctx, err)
		events = left.events
		pause(ctx, max(wait.next(), left.after))
	}
}

// insistOnValid finds the events that can never be published and says the others, in order.
func (p *publisher) insistOnValid(ctx context.Context, events []event.Event, err error) error {
	if len(events) == 1 {
		p.meter.Refused(events[0])
		telemetry.Logger(ctx).ErrorContext(ctx, "event cannot be published and is dropped",
			append(telemetry.FieldsOf(events[0]), "error", err)...)
		p.trouble.Note(ctx, nil) // nothing is left that fails
		return nil
	}
	half := len(events) / 2
	if err := p.insist(ctx, events[:half]); err != nil {
		return err
	}
	return p.insist(ctx, events[half:])
}

// isStatus: that a job is deleted is the last of its statuses.
func isStatus(e event.Event) bool {
	return e.Type() == jobevent.TypeStatus || e.Type() == jobevent.TypeDeleted
}
