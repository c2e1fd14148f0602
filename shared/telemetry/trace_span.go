package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Span is one that has begun; a nil one is none.
type Span struct{ span trace.Span }

// End ends it. kind is what went wrong, one of few words; empty: nothing.
func (s *Span) End(kind string, attrs ...attribute.KeyValue) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attrs...)
	if kind != "" {
		fail(s.span, kind)
	}
	s.span.End()
}

// fail marks a span of what went wrong. What the error says is for the log: there may be anything in it.
func fail(span trace.Span, kind string) {
	span.SetStatus(codes.Error, "")
	span.SetAttributes(attribute.String("error.type", kind))
}

// other is what went wrong where nothing better is known: OpenTelemetry's word.
const other = "_OTHER"

// errorKind is a word for an error; empty: there is none.
func errorKind(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, jobevent.ErrInvalid):
		return "invalid"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return other
}

// Together begins the span of what is done at once for several spans, such as one transaction: it belongs to none of
// their traces rather than to the first, links to each, and each that has not ended to it. What is done for one alone
// is its child, without a span between.
func (t *Tracing) Together(
	ctx context.Context, name string, of []trace.Span, attrs ...attribute.KeyValue,
) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	links := make([]trace.Link, 0, len(of))
	var last trace.Span
	for _, span := range of {
		if span.SpanContext().IsSampled() {
			last, links = span, append(links, trace.Link{SpanContext: span.SpanContext()})
		}
	}
	switch len(links) {
	case 0:
		return trace.ContextWithSpan(ctx, nil), nil
	case 1:
		return trace.ContextWithSpan(ctx, last), nil
	}
	ctx, span := t.start(ctx, beginning{name: name, kind: trace.SpanKindInternal, links: links, attrs: attrs})
	for _, one := range of {
		if one.IsRecording() {
			one.AddLink(trace.Link{SpanContext: span.SpanContext()})
		}
	}
	return ctx, &Span{span}
}

// TogetherFor is Together for spans of others, or that have ended.
func (t *Tracing) TogetherFor(ctx context.Context, name string, of []trace.SpanContext) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	spans := make([]trace.Span, len(of))
	for i, at := range of {
		spans[i] = remote(at)
	}
	return t.Together(ctx, name, spans)
}

// Done ends a span with the error of what it was of.
func (s *Span) Done(err error) { s.End(errorKind(err)) }

// remote is a span of somebody else, or one that has ended.
func remote(at trace.SpanContext) trace.Span {
	return trace.SpanFromContext(trace.ContextWithRemoteSpanContext(context.Background(), at))
}
