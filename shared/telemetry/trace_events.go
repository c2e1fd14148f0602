package telemetry

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// The transports of events: values of messaging.system.
const (
	OverKafka = "kafka"
	OverHTTP  = "cloudevents"
)

// ParentOf returns the span from which an event came; it is invalid if the event is in no trace. The parent of an event
// that was published outside of any span is the job's first span.
func (t *Tracing) ParentOf(e jobevent.Item) trace.SpanContext {
	if t == nil {
		return trace.SpanContext{}
	}
	parent := parentOf(e.TraceParent())
	if !parent.IsValid() || parent.SpanID() != trace.SpanID(jobevent.SpanID(e.ID())) {
		return parent
	}
	job := e.JobID()
	if job == uuid.Nil {
		return trace.SpanContext{}
	}
	return spanOfJob(parent.TraceID(), jobevent.JobSpanID(job), job)
}

// spanOfJob returns the context of a span in a job's trace. The job's id decides whether it is sampled.
func spanOfJob(id trace.TraceID, span trace.SpanID, job uuid.UUID) trace.SpanContext {
	var flags trace.TraceFlags
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: span, TraceFlags: flags.WithSampled(jobevent.Sampled(job)), Remote: true,
	})
}

// Keeps reports whether the trace of a request with that traceparent is kept. The request's span must have begun.
func Keeps(ctx context.Context, traceparent string) bool {
	if TracingOf(ctx) != nil {
		return trace.SpanContextFromContext(ctx).IsSampled()
	}
	parent := parentOf(traceparent)
	return !parent.IsValid() || parent.IsSampled()
}

// KeepsAsked reports whether the trace of a caller with that traceparent is kept.
func KeepsAsked(ctx context.Context, traceparent string) bool {
	parent := parentOf(traceparent)
	if t := TracingOf(ctx); t != nil && !t.sampler.withParent {
		return t.KeepsNew(uuid.UUID(parent.TraceID()))
	}
	return parent.IsSampled()
}

// KeepsNew reports whether a trace that begins here is kept.
func (t *Tracing) KeepsNew(id uuid.UUID) bool { return t == nil || t.sampler.keeps(trace.TraceID(id)) }

// SetParent sets the span from which an event came, if that is kept: an item without one may be an array, see
// jobevent.Pack.
func SetParent(e *jobevent.Item, parent trace.SpanContext) {
	if parent.IsSampled() {
		e.SetTraceParent(traceParent(parent))
	}
}

// SetHere sets the context's span as the parent of an event. If that span is in another trace than the event, the
// parent is the span own in the event's trace, and the two spans are linked.
func SetHere(ctx context.Context, e *jobevent.Item, own [8]byte) {
	if TracingOf(ctx) == nil {
		return
	}
	here := trace.SpanFromContext(ctx)
	id := trace.TraceID(e.TraceID())
	if !id.IsValid() || !here.SpanContext().IsValid() {
		return
	}
	if here.SpanContext().TraceID() == id {
		SetParent(e, here.SpanContext())
		return
	}
	job := e.JobID()
	if job == uuid.Nil {
		return
	}
	there := spanOfJob(id, own, job)
	SetParent(e, there)
	here.AddLink(trace.Link{SpanContext: there})
}

// SetAsked sets the traceparent of a caller as the parent of an event.
func SetAsked(ctx context.Context, e *jobevent.Item, asked string) {
	if TracingOf(ctx) == nil {
		return
	}
	parent := parentOf(asked)
	if !parent.IsValid() {
		return
	}
	SetParent(e, parent)
	trace.SpanFromContext(ctx).AddLink(trace.Link{SpanContext: parent})
}

// Hop sets the span of the HTTP request that brought an event as the event's parent, if both are in the same trace.
func (t *Tracing) Hop(e *jobevent.Item, header http.Header) {
	if t == nil {
		return
	}
	hop := parentOf(header.Get("Traceparent"))
	if hop.IsValid() && hop.TraceID() == parentOf(e.TraceParent()).TraceID() {
		SetParent(e, hop)
	}
}

// Handling has the spans of a batch that is being handled. A nil Handling has none.
type Handling struct {
	spans []trace.Span
	ofJob map[uuid.UUID]trace.SpanContext
	all   *Span
}

// Handle begins the spans of a batch that is to be handled: one for each event, in the event's trace. For several
// events it begins one more, the parent of work that is done for all of them.
func (t *Tracing) Handle(
	ctx context.Context, function, system string, batch []jobevent.Item,
) (context.Context, *Handling) {
	if t == nil {
		return ctx, nil
	}
	h := &Handling{ofJob: make(map[uuid.UUID]trace.SpanContext, len(batch))}
	for _, e := range batch {
		parent := t.ParentOf(e)
		if !parent.IsSampled() {
			continue
		}
		_, span := t.start(ctx, beginning{
			name: "process " + destination(e), kind: trace.SpanKindConsumer, parent: parent,
			attrs: append(messageAttrs(e, system, "process"),
				attribute.String("messaging.consumer.group.name", "jobweaver-"+function)),
		})
		h.spans = append(h.spans, span)
		if e.JobID() != uuid.Nil {
			h.ofJob[e.JobID()] = span.SpanContext()
		}
	}
	ctx, h.all = t.Together(ctx, "process batch", h.spans, attribute.String("messaging.system", system),
		attribute.String("messaging.operation.name", "process"), attribute.String("messaging.operation.type", "process"),
		attribute.Int("messaging.batch.message_count", len(batch)))
	return ctx, h
}

// SetParents sets the parent of each event that follows from the batch: the span of the handled event about the job.
func (h *Handling) SetParents(events []jobevent.Item) {
	if h == nil {
		return
	}
	for i := range events {
		from, known := h.ofJob[events[i].JobID()]
		if known && from.TraceID() == trace.TraceID(events[i].TraceID()) {
			SetParent(&events[i], from)
		}
	}
}

// End ends the spans.
func (h *Handling) End(err error) {
	if h == nil {
		return
	}
	kind := errorKind(err)
	for _, span := range h.spans {
		(&Span{span}).End(kind)
	}
	h.all.End(kind)
}

// Publish begins a span for each event that is published in a trace, and returns the events with these spans as
// parents. done ends the spans; its argument are the events that were acknowledged.
func (t *Tracing) Publish(
	ctx context.Context, system string, events []jobevent.Item,
) (now []jobevent.Item, done func(acknowledged []jobevent.Item, err error)) {
	if t == nil {
		return events, func([]jobevent.Item, error) {}
	}
	now = make([]jobevent.Item, len(events))
	spans := make(map[int]trace.Span, len(events))
	for i, e := range events {
		now[i] = e // a copy: a repeated try starts from the unchanged event
		parent := t.ParentOf(e)
		if !parent.IsSampled() {
			continue
		}
		_, span := t.start(ctx, beginning{
			name: "send " + destination(e), kind: trace.SpanKindProducer, parent: parent, span: firstSpan(e, parent),
			attrs: messageAttrs(e, system, "send"),
		})
		now[i].SetTraceParent(traceParent(span.SpanContext()))
		spans[i] = span
	}
	return now, func(acknowledged []jobevent.Item, err error) {
		through := make(map[string]bool, len(acknowledged))
		for _, e := range acknowledged {
			through[e.ID()] = true
		}
		for i, span := range spans {
			if kind := errorKind(err); kind != "" && !through[now[i].ID()] {
				fail(span, kind)
			}
			span.End()
		}
	}
}

// firstSpan returns the id of the span that publishes a job for the first time. For any other event it returns zero,
// which means a new id.
func firstSpan(e jobevent.Item, parent trace.SpanContext) trace.SpanID {
	job := e.JobID()
	if e.Type() != jobevent.TypeCreated || parent.SpanID() == trace.SpanID(jobevent.JobSpanID(job)) {
		return trace.SpanID{}
	}
	return jobevent.JobSpanID(job)
}

// destination returns an event's topic.
func destination(e jobevent.Item) string {
	topic, err := e.Topic()
	if err != nil {
		return "other"
	}
	return topic
}

func messageAttrs(e jobevent.Item, system, operation string) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 8)
	attrs = append(attrs,
		attribute.String("messaging.system", system), attribute.String("messaging.destination.name", destination(e)),
		attribute.String("messaging.operation.name", operation), attribute.String("messaging.operation.type", operation),
		attribute.String("messaging.message.id", e.ID()), attribute.String("cloudevents.event_type", e.Type()))
	if e.Subject() != "" {
		attrs = append(attrs, attribute.String(AttrJobID, e.Subject()))
	}
	return attrs
}
