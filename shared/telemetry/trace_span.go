package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Span is a span that has begun. A nil Span does nothing.
type Span struct{ span trace.Span }

// End ends the span. kind is the kind of an error, one of few values; empty: no error.
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

// fail marks a span as failed. The text of the error is for the log only, since it may contain anything.
func fail(span trace.Span, kind string) {
	span.SetStatus(codes.Error, "")
	span.SetAttributes(attribute.String("error.type", kind))
}

// other is OpenTelemetry's value for a kind that is not known.
const other = "_OTHER"

// errorKind returns the kind of an error; empty for nil.
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

// Together begins the span of work that is done once for several spans, such as one transaction. It is in a trace of
// its own, links to each of them, and each that has not ended links to it. If only one of them is kept, there is no
// such span: the work is then a child of that one.
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

// TogetherFor is Together for spans of other processes, or that have ended.
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

// Done ends a span with the error of its work.
func (s *Span) Done(err error) { s.End(errorKind(err)) }

// remote returns a span of another process, or one that has ended.
func remote(at trace.SpanContext) trace.Span {
	return trace.SpanFromContext(trace.ContextWithRemoteSpanContext(context.Background(), at))
}
