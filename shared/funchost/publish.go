package funchost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/batching"
	"github.com/jobweaver/jobweaver/shared/eventkeys"
	"github.com/jobweaver/jobweaver/shared/funchost/sink"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// publisher publishes events to the sink or to Kafka.
type publisher struct {
	meter   telemetry.Meter
	tracing *telemetry.Tracing
	over    string          // the name of the transport
	keys    *eventkeys.Keys // nil: no event is signed
	public  StatusEvents
	// send publishes events once, in any order, and returns those that were published.
	send    func(ctx context.Context, events []event.Event) (sent []event.Event, err error)
	close   func()
	trouble telemetry.Trouble // of insist
}

// unsent is an error after which only some items have to be published again.
type unsent struct {
	items []jobevent.Item
	after time.Duration // the pause that the sink asked for
	err   error
}

func (u *unsent) Error() string { return u.err.Error() }
func (u *unsent) Unwrap() error { return u.err }

// RetryAfter returns the pause that the sink asked for.
func (u *unsent) RetryAfter() time.Duration { return u.after }

// NewPublisher returns a Publish like that of a function's host, for programs that are not hosted. It connects with the
// first events.
func NewPublisher(cfg Config) (Publish, func(), error) {
	p, err := newPublisher(cfg, telemetry.NewMeter("unhosted"))
	if err != nil {
		return nil, nil, err
	}
	return p.publish, p.close, nil
}

// errAlone is the error if a function of MainWithoutDatabase publishes.
var errAlone = errors.New("the function has no broker, but published an event")

func newPublisher(cfg Config, meter telemetry.Meter) (*publisher, error) {
	keys, err := cfg.signer()
	if err != nil {
		return nil, err
	}
	p := &publisher{
		meter: meter, over: telemetry.OverKafka, keys: keys, public: cfg.StatusEvents, close: func() {},
		trouble: telemetry.Trouble{What: "publish"},
	}
	if cfg.Sink != "" {
		s, err := cfg.newSink(meter)
		if err != nil {
			return nil, err
		}
		p.over, p.send, p.close = telemetry.OverHTTP, s.Send, s.Close
		return p, nil
	}
	if cfg.alone {
		p.send = func(context.Context, []event.Event) ([]event.Event, error) { return nil, errAlone }
		return p, nil
	}
	producer, closing, err := cfg.producer()
	if err != nil {
		return nil, err
	}
	p.close = closing
	p.send = func(ctx context.Context, events []event.Event) ([]event.Event, error) {
		if err := producer.Publish(ctx, events); err != nil {
			return nil, err
		}
		return events, nil
	}
	return p, nil
}

// producer returns the producer, which the functions of one process share.
func (c Config) producer() (p *kafkaevent.Producer, closing func(), err error) {
	if c.beside != nil {
		return c.beside.producer, func() {}, nil
	}
	if p, err = kafkaevent.NewProducer(c.Kafka); err != nil {
		return nil, nil, err
	}
	return p, p.Close, nil
}

func (c Config) newSink(meter telemetry.Meter) (*sink.Sink, error) {
	trust, err := c.sinkTrust()
	if err != nil {
		return nil, err
	}
	return sink.New(sink.Config{
		URL: c.Sink, Overrides: c.CEOverrides, Trust: trust, UserAgent: "jobweaver/" + Version, Meter: meter,
	})
}

// unpublished returns those of the items that still have to be published after a Publish returned err.
func unpublished(items []jobevent.Item, err error) []jobevent.Item {
	if left := (*unsent)(nil); errors.As(err, &left) {
		return left.items
	}
	return items
}

// publish is a Publish. If the sink refuses an item of a job, the job's status is held back. Otherwise the API would
// show FAILED, request no report, and the dead letter would be lost. Since the API requests reports until it has seen
// that version, both items are published again until the sink accepts them.
//
// A Broker would deliver each public status to projection by itself. So behind a sink projection receives the statuses
// of a call together, in events that are published once the public ones are. They do not wait for items that fail: the
// sink may answer one item with 503 for ever.
func (p *publisher) publish(ctx context.Context, items []jobevent.Item) error {
	rest := p.phases(items)
	var left unsent
	for i := range rest {
		phase, began := rest[i], time.Now()
		if left.err != nil && i < sendTogether {
			left.items = append(left.items, phase...)
			continue
		}
		if len(phase) == 0 {
			continue // there were none, or all were held back
		}
		traced, done := p.tracing.Publish(ctx, p.over, phase)
		sent, again, err := p.sendPacked(ctx, traced)
		published := pick(traced, sent)
		done(published, err)
		p.meter.Published(published, time.Since(began), err)
		if i == sendFirst {
			rest[sendStatuses] = withoutRefused(rest[sendStatuses], phase, slices.Concat(sent, again))
		}
		if i < sendTogether && p.over == telemetry.OverHTTP {
			rest[sendTogether] = append(rest[sendTogether], forFunctions(pick(phase, sent))...)
		}
		if err == nil {
			continue
		}
		if left.err == nil {
			left.err = err
		}
		if partly := (*sink.Unsent)(nil); errors.As(err, &partly) {
			left.after = max(left.after, partly.After)
		}
		// Untraced: the span of each try stands beside that of the last one, not below it.
		left.items = append(left.items, pick(phase, again)...)
	}
	if left.err != nil {
		return &left
	}
	return nil
}

// sendPacked sends items in events. It returns the indexes of the items that were published, and of those that have to
// be published again; the sink has refused the others.
func (p *publisher) sendPacked(ctx context.Context, items []jobevent.Item) (published, left []int, err error) {
	events, of := jobevent.Pack(items)
	p.keys.Sign(events)
	placeOf := make(map[string]int, len(events))
	for i := range events {
		placeOf[events[i].ID()] = i
	}
	itemsOf := func(events []event.Event) (items []int) {
		for i := range events {
			items = append(items, of[placeOf[events[i].ID()]]...)
		}
		return items
	}
	sent, err := p.send(ctx, events)
	if err == nil {
		return itemsOf(sent), nil, nil
	}
	if partly := (*sink.Unsent)(nil); errors.As(err, &partly) {
		return itemsOf(sent), itemsOf(partly.Events), err
	}
	return itemsOf(sent), itemsOf(events), err
}

// pick returns the items with these indexes, in their order.
func pick(items []jobevent.Item, places []int) []jobevent.Item {
	slices.Sort(places)
	picked := make([]jobevent.Item, len(places))
	for i, place := range places {
		picked[i] = items[place]
	}
	return picked
}

// The phases of publishing. Each must be acknowledged before the next one is sent: a job's status comes after all other
// events about the job. Otherwise the API could have the status and not request events that were lost.
const (
	sendFirst    = iota // also the statuses of jobs about which there is no other item
	sendStatuses        // and deletions
	sendTogether        // behind a sink, those of the phases before that are for anyone, for projection
)

// phases splits items into phases. The last one is empty yet.
func (p *publisher) phases(items []jobevent.Item) (all [sendTogether + 1][]jobevent.Item) {
	others := map[uuid.UUID]bool{}
	for i := range items {
		if !isStatus(&items[i]) {
			others[items[i].JobID()] = true
		}
	}
	all[sendFirst] = make([]jobevent.Item, 0, len(items))
	for i := range items {
		it, phase := items[i], sendFirst
		if isStatus(&it) {
			if !p.public.includes(&it) {
				it = it.ForFunctions()
			}
			if others[it.JobID()] {
				phase = sendStatuses
			}
		}
		all[phase] = append(all[phase], it)
	}
	return all
}

// forFunctions returns those of the published items that projection receives in events of its own.
func forFunctions(published []jobevent.Item) (items []jobevent.Item) {
	for i := range published {
		if it := &published[i]; isStatus(it) && it.Type() != jobevent.TypesStatus {
			items = append(items, it.ForFunctions())
		}
	}
	return items
}

// withoutRefused removes the statuses of jobs of which an item was refused. settled has the indexes of the phase's
// items that were published or are left for the next try; the others were refused.
func withoutRefused(statuses, phase []jobevent.Item, settled []int) []jobevent.Item {
	if len(settled) >= len(phase) {
		return statuses
	}
	is := make([]bool, len(phase))
	for _, i := range settled {
		is[i] = true
	}
	refused := map[uuid.UUID]bool{}
	for i := range phase {
		if !is[i] {
			refused[phase[i].JobID()] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(statuses), func(it jobevent.Item) bool { return refused[it.JobID()] })
}

// insist is PublishAll with the host's publisher.
func (p *publisher) insist(ctx context.Context, items []jobevent.Item) error {
	return PublishAll(ctx, p.publish, items, &p.trouble, p.meter.Refused)
}

// PublishAll publishes until all items are acknowledged or ctx ends, however long the broker is unavailable, and notes
// such an outage in trouble. It logs and drops items that can never be published: they must not hold up the items
// behind them.
func PublishAll(
	ctx context.Context, publish Publish, items []jobevent.Item, trouble *telemetry.Trouble, dropped func(jobevent.Item),
) error {
	if len(items) == 0 {
		return nil // publishing no item does not show that the broker works
	}
	err := retry.UntilDone(ctx, retry.Backoff(firstRetry, lastRetry), trouble, isInvalid, func() error {
		err := publish(ctx, items)
		items = unpublished(items, err) // so that a slow sink does not receive all of them again
		return err
	})
	if err != nil && !isInvalid(err) {
		return fmt.Errorf("give up publishing: %w", err)
	}
	isDue := func(err error, _ int) bool { return isInvalid(err) }
	again := func(half []jobevent.Item) error { return PublishAll(ctx, publish, half, trouble, dropped) }
	return batching.Bisect(items, err, again, isDue, func(one jobevent.Item, err error) error {
		dropped(one)
		telemetry.Logger(ctx).ErrorContext(ctx, "event cannot be published and is dropped",
			append(telemetry.FieldsOf(one), "error", err)...)
		return nil
	})
}

func isInvalid(err error) bool { return errors.Is(err, jobevent.ErrInvalid) }

// isStatus reports whether an item is a status: the deletion is the last status of a job.
func isStatus(it *jobevent.Item) bool {
	switch it.Type() {
	case jobevent.TypeStatus, jobevent.TypesStatus, jobevent.TypeDeleted:
		return true
	}
	return false
}
