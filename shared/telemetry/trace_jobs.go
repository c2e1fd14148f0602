package telemetry

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Attempt has the attributes of an attempt's span.
type Attempt struct {
	JobID    uuid.UUID
	Number   int
	JobType  string
	Queue    string
	WorkerID string
}

func (a Attempt) spanOf(number int) trace.SpanID {
	return jobevent.SpanID(jobevent.AttemptToken(a.JobID, number))
}

// Attempt begins the span of an attempt below order, the span of its run-job. From the second attempt on the span links
// to the one of the attempt before.
func (t *Tracing) Attempt(ctx context.Context, order trace.SpanContext, a Attempt) (context.Context, *Span) {
	if t == nil || !order.IsValid() {
		return ctx, nil
	}
	b := beginning{
		name: "run " + a.JobType, kind: trace.SpanKindConsumer, parent: order, span: a.spanOf(a.Number),
		attrs: []attribute.KeyValue{
			attribute.String("messaging.system", OverKafka),
			attribute.String("messaging.operation.name", "run"), attribute.String("messaging.operation.type", "process"),
			attribute.String("messaging.destination.name", jobevent.RunTopic(a.Queue)),
			attribute.String(AttrJobID, a.JobID.String()), attribute.Int(AttrAttempt, a.Number),
			attribute.String(AttrJobType, a.JobType), attribute.String(AttrQueue, a.Queue),
			attribute.String(AttrWorker, a.WorkerID),
		},
	}
	if a.Number > 1 {
		before := trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: order.TraceID(), SpanID: a.spanOf(a.Number - 1), TraceFlags: order.TraceFlags(), Remote: true,
		})
		number := attribute.Int(AttrAttempt, a.Number-1)
		b.links = []trace.Link{{SpanContext: before, Attributes: []attribute.KeyValue{number}}}
	}
	ctx, span := t.start(ctx, b)
	return ctx, &Span{span}
}

// AttemptSpan returns the span context of an attempt whose run-job has the span order.
func (t *Tracing) AttemptSpan(order trace.SpanContext, jobID uuid.UUID, number int) trace.SpanContext {
	at := order.WithSpanID(Attempt{JobID: jobID}.spanOf(number))
	if !t.sampler.withParent {
		at = at.WithTraceFlags(at.TraceFlags().WithSampled(t.sampler.keeps(at.TraceID())))
	}
	return at
}

// Root begins the first span of a trace, for work that no request caused.
func (t *Tracing) Root(ctx context.Context, traceID uuid.UUID, name string) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	ctx, span := t.start(ctx, beginning{name: name, kind: trace.SpanKindInternal, trace: trace.TraceID(traceID)})
	return ctx, &Span{span}
}

// SetRoot sets as the parent of an event about a new job the first span of the job's trace, which begins and ends here:
// no request caused the job.
func SetRoot(ctx context.Context, e *jobevent.Item, name string) {
	traced, root := TracingOf(ctx).Root(ctx, e.TraceID(), name)
	SetHere(traced, e, jobevent.JobSpanID(e.JobID()))
	root.Done(nil)
}

// OfJob begins a span below a job's first one, for later work on the job.
func (t *Tracing) OfJob(ctx context.Context, traceID, jobID uuid.UUID, name string) (context.Context, *Span) {
	if t == nil || traceID == uuid.Nil {
		return ctx, nil
	}
	ctx, span := t.start(ctx, beginning{
		name: name, kind: trace.SpanKindInternal, parent: spanOfJob(trace.TraceID(traceID), jobevent.JobSpanID(jobID), jobID),
		attrs: []attribute.KeyValue{attribute.String(AttrJobID, jobID.String())},
	})
	return ctx, &Span{span}
}

type queryKey struct{}

// Query begins the span of a statement, or of several that are sent together, if the context has a span that is kept.
// The span has the names of the statements, and neither their texts nor their arguments.
func Query(ctx context.Context, database string, sql ...string) context.Context {
	here := trace.SpanContextFromContext(ctx)
	if !here.IsSampled() {
		return ctx
	}
	t := TracingOf(ctx)
	if t == nil {
		return ctx
	}
	names := make([]string, len(sql))
	for i, text := range sql {
		names[i] = statement(text)
	}
	name := strings.Join(names, " ")
	_, span := t.start(ctx, beginning{
		name: name, kind: trace.SpanKindClient, parent: here,
		attrs: []attribute.KeyValue{
			attribute.String("db.system.name", "postgresql"), attribute.String("db.namespace", database),
			attribute.String("db.query.summary", name),
		},
	})
	return context.WithValue(ctx, queryKey{}, span)
}

// Queried ends the span that Query began, if any. code is the SQLSTATE of an error.
func Queried(ctx context.Context, code string, err error) {
	span, began := ctx.Value(queryKey{}).(trace.Span)
	if !began {
		return
	}
	switch {
	case code != "":
		(&Span{span}).End(code, attribute.String("db.response.status_code", code))
	default:
		(&Span{span}).End(errorKind(err))
	}
}

// statement returns the name that a statement has in its file, or its first word.
func statement(sql string) string {
	if rest, named := strings.CutPrefix(sql, "-- name: "); named {
		name, _, _ := strings.Cut(rest, " ")
		return name
	}
	words := strings.Fields(sql)
	if len(words) == 0 {
		return "query"
	}
	return strings.ToUpper(words[0])
}
