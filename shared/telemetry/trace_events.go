package telemetry

import (
	"context"
	"maps"
	"net/http"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// What carries events: messaging.system.
const (
	OverKafka = "kafka"
	OverHTTP  = "cloudevents"
)

// ParentOf is the span from which an event came; invalid: it belongs to no trace. One that was said outside of any span
// stands below the job's first one.
func (t *Tracing) ParentOf(e event.Event) trace.SpanContext {
	if t == nil {
		return trace.SpanContext{}
	}
	parent := parentOf(jobevent.Extension(e, jobevent.ExtTraceParent))
	if !parent.IsValid() || parent.SpanID() != trace.SpanID(jobevent.SpanID(e.ID())) {
		return parent
	}
	job, err := uuid.Parse(e.Subject())
	if err != nil {
		return trace.SpanContext{}
	}
	return spanOfJob(parent.TraceID(), jobevent.JobSpanID(job), job)
}

// spanOfJob is a span in the trace of a job of which nothing else is known here.
func spanOfJob(id trace.TraceID, span trace.SpanID, job uuid.UUID) trace.SpanContext {
	var flags trace.TraceFlags
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: span, TraceFlags: flags.WithSampled(jobevent.Sampled(job)), Remote: true,
	})
}

// Keeps says whether the trace of a request with that traceparent is kept, once its span has begun.
func Keeps(ctx context.Context, traceparent string) bool {
	if TracingOf(ctx) != nil {
		return trace.SpanContextFromContext(ctx).IsSampled()
	}
	parent := parentOf(traceparent)
	return !parent.IsValid() || parent.IsSampled()
}

// KeepsAsked says whether the trace of whoever asks with that traceparent is kept.
func KeepsAsked(ctx context.Context, traceparent string) bool {
	parent := parentOf(traceparent)
	if t := TracingOf(ctx); t != nil && !t.sampler.withParent {
		return t.KeepsNew(uuid.UUID(parent.TraceID()))
	}
	return parent.IsSampled()
}

// KeepsNew says whether a trace that begins here is kept.
func (t *Tracing) KeepsNew(id uuid.UUID) bool { return t == nil || t.sampler.keeps(trace.TraceID(id)) }

// SetParent says from which span an event came.
func SetParent(e *event.Event, parent trace.SpanContext) {
	e.SetExtension(jobevent.ExtTraceParent, traceParent(parent))
}

// SetHere says that an event came from the context's span. If that is of another trace than the event, it came from the
// given span of its own, and the two are linked.
func SetHere(ctx context.Context, e *event.Event, own [8]byte) {
	if TracingOf(ctx) == nil {
		return
	}
	here := trace.SpanFromContext(ctx)
	id := trace.TraceID(jobevent.TraceIDOf(*e))
	if !id.IsValid() || !here.SpanContext().IsValid() {
		return
	}
	if here.SpanContext().TraceID() == id {
		SetParent(e, here.SpanContext())
		return
	}
	job, err := uuid.Parse(e.Subject())
	if err != nil {
		return
	}
	there := spanOfJob(id, own, job)
	SetParent(e, there)
	here.AddLink(trace.Link{SpanContext: there})
}

// SetAsked says that an event came from whoever asked for it, by a traceparent.
func SetAsked(ctx context.Context, e *event.Event, asked string) {
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

// Hop has an event that came over HTTP stand below whoever brought it, if that one is in the same trace.
func (t *Tracing) Hop(e *event.Event, header http.Header) {
	if t == nil {
		return
	}
	hop := parentOf(header.Get("Traceparent"))
	if hop.IsValid() && hop.TraceID() == parentOf(jobevent.Extension(*e, jobevent.ExtTraceParent)).TraceID() {
		SetParent(e, hop)
	}
}

// Heard are the spans of a batch that is being handled; a nil one has none.
type Heard struct {
	spans []trace.Span
	ofJob map[string]trace.SpanContext // by subject
	all   *Span
}

// Hear begins the spans of a batch: one for each event in its own trace, and of several one more, in which what is
// done for all of them stands.
func (t *Tracing) Hear(ctx context.Context, function, system string, batch []event.Event) (context.Context, *Heard) {
	if t == nil {
		return ctx, nil
	}
	h := &Heard{ofJob: make(map[string]trace.SpanContext, len(batch))}
	for _, e := range batch {
		parent := t.ParentOf(e)
		if !parent.IsValid() {
			continue
		}
		_, span := t.start(ctx, beginning{
			name: "process " + destination(e), kind: trace.SpanKindConsumer, parent: parent,
			attrs: append(messageAttrs(e, system, "process"),
				attribute.String("messaging.consumer.group.name", "jobweaver-"+function)),
		})
		h.spans = append(h.spans, span)
		if e.Subject() != "" {
			h.ofJob[e.Subject()] = span.SpanContext()
		}
	}
	ctx, h.all = t.Together(ctx, "process batch", h.spans, attribute.String("messaging.system", system),
		attribute.String("messaging.operation.name", "process"), attribute.String("messaging.operation.type", "process"),
		attribute.Int("messaging.batch.message_count", len(batch)))
	return ctx, h
}

// Answer says of each event about a job that it came from the span of the event about that job.
func (h *Heard) Answer(say []event.Event) {
	if h == nil {
		return
	}
	for i := range say {
		from, known := h.ofJob[say[i].Subject()]
		if known && from.TraceID() == trace.TraceID(jobevent.TraceIDOf(say[i])) {
			SetParent(&say[i], from)
		}
	}
}

// End ends the spans.
func (h *Heard) End(err error) {
	if h == nil {
		return
	}
	kind := errorKind(err)
	for _, span := range h.spans {
		(&Span{span}).End(kind)
	}
	h.all.End(kind)
}

// Say begins a span for each event that is said in a trace, and gives the events as they are to be said: from there.
// done ends the spans; said are those that got through.
func (t *Tracing) Say(
	ctx context.Context, system string, events []event.Event,
) (now []event.Event, done func(said []event.Event, err error)) {
	if t == nil {
		return events, func([]event.Event, error) {}
	}
	now = make([]event.Event, len(events))
	spans := make(map[int]trace.Span, len(events))
	for i, e := range events {
		now[i] = e
		old, ours := e.Context.(*event.EventContextV1)
		parent := t.ParentOf(e)
		if !parent.IsValid() || !ours {
			continue
		}
		_, span := t.start(ctx, beginning{
			name: "send " + destination(e), kind: trace.SpanKindProducer, parent: parent, span: firstSpan(e, parent),
			attrs: messageAttrs(e, system, "send"),
		})
		own := *old // who says it again begins with what it was
		own.Extensions = maps.Clone(old.Extensions)
		own.Extensions[jobevent.ExtTraceParent] = traceParent(span.SpanContext())
		now[i].Context, spans[i] = &own, span
	}
	return now, func(said []event.Event, err error) {
		through := make(map[string]bool, len(said))
		for _, e := range said {
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

// firstSpan is the id of the span in which a job is told of for the first time; zero, and so any id, of all others.
func firstSpan(e event.Event, parent trace.SpanContext) trace.SpanID {
	job, err := uuid.Parse(e.Subject())
	if err != nil || e.Type() != jobevent.TypeCreated || parent.SpanID() == trace.SpanID(jobevent.JobSpanID(job)) {
		return trace.SpanID{}
	}
	return jobevent.JobSpanID(job)
}

// destination is an event's topic.
func destination(e event.Event) string {
	topic, err := jobevent.TopicOf(e)
	if err != nil {
		return "other"
	}
	return topic
}

func messageAttrs(e event.Event, system, operation string) []attribute.KeyValue {
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
