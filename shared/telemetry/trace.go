package telemetry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	scope       = "github.com/jobweaver/jobweaver"
	flushAtMost = 3 * time.Second
	// maxLinks is large because the span of a batch links to each of its events.
	maxLinks = 1000
)

// JobWeaver's own attributes of spans.
const (
	AttrJobID   = "jobweaver.job.id"
	AttrJobType = "jobweaver.job.type"
	AttrAttempt = "jobweaver.attempt"
	AttrQueue   = "jobweaver.queue"
	AttrOutcome = "jobweaver.outcome"
	AttrWorker  = "jobweaver.worker.id"
)

// Tracing makes the spans of one function. A nil one makes none, and costs nothing.
type Tracing struct {
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider
	sampler  sampler
	otlp     *otlp
	flush    time.Duration // how long the last spans may take to be sent
}

// OpenTracing returns nil if no collector is set. An error begins with the name of a wrong setting, even of one that
// has no effect without a collector.
func OpenTracing(cfg TraceConfig, function, version string, logger *slog.Logger) (*Tracing, error) {
	if cfg.Disabled || cfg.Exporter == "none" {
		return nil, nil
	}
	if err := cfg.checkValues(); err != nil || !cfg.On() {
		return nil, err
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	sampler, err := cfg.sampler()
	if err != nil {
		return nil, err
	}
	about, err := cfg.resource(function, version)
	if err != nil {
		return nil, err
	}
	client, err := newOTLP(cfg, logger)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptrace.New(context.Background(), client)
	if err != nil {
		return nil, fmt.Errorf("start exporter of spans: %w", err)
	}
	limits := sdktrace.NewSpanLimits()
	if _, given := os.LookupEnv("OTEL_SPAN_LINK_COUNT_LIMIT"); !given {
		limits.LinkCountLimit = maxLinks
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter), sdktrace.WithSampler(sampler), sdktrace.WithResource(about),
		sdktrace.WithIDGenerator(ids{}), sdktrace.WithRawSpanLimits(limits))
	return &Tracing{
		tracer: provider.Tracer(scope), provider: provider, sampler: sampler, otlp: client, flush: flushAtMost,
	}, nil
}

// Close sends the last spans, or drops them after flushAtMost.
func (t *Tracing) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.flush)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // otlp has logged its errors
	close(t.otlp.stop)
	select {
	case <-t.otlp.stopped:
	case <-time.After(time.Second):
	}
}

type tracingKey struct{}

// WithTracing puts a function's tracing into the context.
func WithTracing(ctx context.Context, t *Tracing) context.Context {
	if t == nil {
		return ctx
	}
	return context.WithValue(ctx, tracingKey{}, t)
}

// TracingOf returns the context's tracing, or nil.
func TracingOf(ctx context.Context) *Tracing {
	t, _ := ctx.Value(tracingKey{}).(*Tracing)
	return t
}

// beginning has the parameters of a new span.
type beginning struct {
	name   string
	kind   trace.SpanKind
	parent trace.SpanContext // invalid: the span is the first of its trace
	trace  trace.TraceID     // of a span without a parent; zero: a new one
	span   trace.SpanID      // its id; zero: a new one
	links  []trace.Link
	attrs  []attribute.KeyValue
}

type wantedKey struct{}

// start begins a span. The returned context is ctx with the span.
func (t *Tracing) start(ctx context.Context, b beginning) (context.Context, trace.Span) {
	for i, a := range b.attrs { // the collector would refuse a whole batch because of one invalid UTF-8 text
		if a.Value.Type() == attribute.STRING && !utf8.ValidString(a.Value.AsString()) {
			b.attrs[i] = a.Key.String(strings.ToValidUTF8(a.Value.AsString(), "\uFFFD"))
		}
	}
	from := ctx
	if b.trace.IsValid() || b.span.IsValid() {
		from = context.WithValue(from, wantedKey{}, wanted{b.trace, b.span})
	}
	from = trace.ContextWithRemoteSpanContext(from, b.parent)
	_, span := t.tracer.Start(from, b.name,
		trace.WithSpanKind(b.kind), trace.WithLinks(b.links...), trace.WithAttributes(b.attrs...))
	return trace.ContextWithSpan(ctx, span), span
}

// wanted are the ids of a new span; zero: any.
type wanted struct {
	trace trace.TraceID
	span  trace.SpanID
}

// ids makes the ids of traces and spans, except for those that start has chosen.
type ids struct{}

// NewIDs is sdktrace.IDGenerator's.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if w, ok := ctx.Value(wantedKey{}).(wanted); ok && w.trace.IsValid() {
		return w.trace, g.NewSpanID(ctx, w.trace)
	}
	id := trace.TraceID(uuid.New()) // it may become an X-Trace-Id
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID is sdktrace.IDGenerator's.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if w, ok := ctx.Value(wantedKey{}).(wanted); ok && w.span.IsValid() {
		return w.span
	}
	var id trace.SpanID
	for !id.IsValid() {
		_, _ = rand.Read(id[:]) // never fails
	}
	return id
}

// TraceID returns the trace id of a traceparent; ok is false for one that W3C calls invalid.
func TraceID(traceparent string) (id uuid.UUID, ok bool) {
	parent := parentOf(traceparent)
	return uuid.UUID(parent.TraceID()), parent.IsValid()
}

// w3cLength is the length of version 00. A later version may append to it, behind a hyphen.
const w3cLength = len("00-") + 32 + len("-") + 16 + len("-01")

// parentOf returns the span context of a traceparent; it is invalid if the traceparent is. OpenTelemetry's TraceContext
// does the same in six times the time, and this is on the path of every job; FuzzParentOf compares the two.
func parentOf(traceparent string) trace.SpanContext {
	if len(traceparent) < w3cLength || traceparent[2] != '-' || traceparent[35] != '-' || traceparent[52] != '-' {
		return trace.SpanContext{}
	}
	version, rest := traceparent[:2], traceparent[w3cLength:]
	if version == "ff" || rest != "" && (version == "00" || rest[0] != '-') {
		return trace.SpanContext{}
	}
	id, err := trace.TraceIDFromHex(traceparent[3:35])
	if err != nil {
		return trace.SpanContext{}
	}
	span, err := trace.SpanIDFromHex(traceparent[36:52])
	if err != nil {
		return trace.SpanContext{}
	}
	var versionAndFlags [2]byte
	if _, err := hex.Decode(versionAndFlags[:], []byte(version+traceparent[53:w3cLength])); err != nil ||
		strings.ToLower(traceparent[:w3cLength]) != traceparent[:w3cLength] {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(versionAndFlags[1]) & trace.FlagsSampled, Remote: true,
	})
}

// traceParent returns the W3C form of a span context.
func traceParent(at trace.SpanContext) string {
	flags := "-00"
	if at.IsSampled() {
		flags = "-01"
	}
	return "00-" + at.TraceID().String() + "-" + at.SpanID().String() + flags
}
