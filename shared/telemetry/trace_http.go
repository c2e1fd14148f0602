package telemetry

import (
	"net"
	"net/http"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Serve begins the span of a request in a trace: below the request's traceparent if that is of this trace, otherwise as
// the trace's first span. The returned request has the span in its context.
func (t *Tracing) Serve(r *http.Request, traceID uuid.UUID, route string) (*http.Request, *Span) {
	if t == nil {
		return r, nil
	}
	parent := parentOf(r.Header.Get("Traceparent"))
	if parent.TraceID() != trace.TraceID(traceID) {
		parent = trace.SpanContext{}
	} else if state, err := trace.ParseTraceState(r.Header.Get("Tracestate")); err == nil {
		parent = parent.WithTraceState(state)
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	name := methodOf(r)
	if route != "" {
		name += " " + route
	}
	ctx, span := t.start(r.Context(), beginning{
		name: name, kind: trace.SpanKindServer, parent: parent, trace: trace.TraceID(traceID),
		attrs: append(serverOf(r.Host),
			attribute.String("http.request.method", methodOf(r)), attribute.String("http.route", route),
			attribute.String("url.scheme", scheme), attribute.String("url.path", r.URL.EscapedPath()),
			attribute.String("network.protocol.version", strconv.Itoa(r.ProtoMajor)+"."+strconv.Itoa(r.ProtoMinor))),
	})
	return r.WithContext(ctx), &Span{span}
}

// Answered ends the span of a request.
func (s *Span) Answered(status int) {
	kind := ""
	if status >= http.StatusInternalServerError {
		kind = strconv.Itoa(status)
	}
	s.End(kind, attribute.Int("http.response.status_code", status))
}

// Call begins the span of a call below the span of the request's context. If the request has a traceparent, it becomes
// that of the new span. The span has only the host of the URL: the rest may have a secret.
func Call(r *http.Request) *Span {
	t, ctx := TracingOf(r.Context()), r.Context()
	if t == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	_, span := t.start(ctx, beginning{
		name: methodOf(r), kind: trace.SpanKindClient, parent: trace.SpanContextFromContext(ctx),
		attrs: append(serverOf(r.URL.Host),
			attribute.String("http.request.method", methodOf(r)), attribute.String("url.scheme", r.URL.Scheme)),
	})
	if r.Header.Get("Traceparent") != "" {
		r.Header.Set("Traceparent", traceParent(span.SpanContext()))
	}
	return &Span{span}
}

// Called ends the span of a call.
func (s *Span) Called(status int, err error) {
	switch {
	case err != nil:
		s.End(errorKind(err))
	case status >= http.StatusBadRequest:
		s.End(strconv.Itoa(status), attribute.Int("http.response.status_code", status))
	default:
		s.End("", attribute.Int("http.response.status_code", status))
	}
}

// methodOf bounds the values of the attribute: a client can send any text as a method.
func methodOf(r *http.Request) string {
	if slices.Contains([]string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace,
	}, r.Method) {
		return r.Method
	}
	return other
}

func serverOf(host string) []attribute.KeyValue {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return append(make([]attribute.KeyValue, 0, 8), attribute.String("server.address", host))
	}
	attrs := append(make([]attribute.KeyValue, 0, 8), attribute.String("server.address", name))
	if n, err := strconv.Atoi(port); err == nil {
		attrs = append(attrs, attribute.Int("server.port", n))
	}
	return attrs
}
