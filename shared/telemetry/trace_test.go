package telemetry

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/secret"
)

// catch is a collector that first answers with each of the statuses.
func catch(t *testing.T, statuses ...int) (url string, spans func() []*tracepb.Span) {
	t.Helper()
	var mu sync.Mutex
	var got []*tracepb.Span
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := int(asked.Add(1)); n <= len(statuses) {
			w.WriteHeader(statuses[n-1])
			return
		}
		body, _ := io.ReadAll(r.Body)
		var all tracepb.TracesData
		if err := proto.Unmarshal(body, &all); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, resource := range all.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				got = append(got, scope.Spans...)
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []*tracepb.Span {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

func openTracing(t *testing.T, cfg TraceConfig) *Tracing {
	t.Helper()
	logger, err := NewLogger(t.Output(), "", "text")
	if err != nil {
		t.Fatal(err)
	}
	tracing, err := OpenTracing(cfg, "test", "v1", logger)
	if err != nil {
		t.Fatal(err)
	}
	return tracing
}

func ofJob(t *testing.T, typ, id string, job, traceID uuid.UUID) jobevent.Item {
	t.Helper()
	e, err := jobevent.New(typ, jobevent.Meta{Function: "test", ID: id, JobID: job, TraceID: traceID}, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestWithoutACollectorThereIsNoTracing(t *testing.T) {
	t.Parallel()
	for _, cfg := range []TraceConfig{
		{}, {Endpoint: "http://x", Disabled: true}, {Endpoint: "http://x", Exporter: "none"},
	} {
		if tracing, err := OpenTracing(cfg, "test", "v1", nil); tracing != nil || err != nil {
			t.Errorf("%+v makes %v, %v", cfg, tracing, err)
		}
	}
	// A nil Tracing accepts all calls and changes nothing.
	var none *Tracing
	e := ofJob(t, jobevent.TypeStatus, "1", uuid.New(), uuid.New())
	before := e.TraceParent()
	ctx, handling := none.Handle(t.Context(), "test", OverKafka, []jobevent.Item{e})
	handling.SetParents([]jobevent.Item{e})
	handling.End(nil)
	published, done := none.Publish(ctx, OverKafka, []jobevent.Item{e})
	done(published, nil)
	none.Close()
	if ctx != t.Context() && trace.SpanContextFromContext(ctx).IsValid() || published[0].TraceParent() != before {
		t.Error("there is a span")
	}
}

func TestABadTraceSettingIsNamed(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]TraceConfig{
		"OTEL_EXPORTER_OTLP_ENDPOINT":           {Endpoint: "localhost:4318"},
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT":    {TracesEndpoint: "ftp://x"},
		"OTEL_EXPORTER_OTLP_PROTOCOL":           {Endpoint: "http://x", Protocol: "grpc"},
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL":    {Endpoint: "http://x", TracesProtocol: "http/json"},
		"OTEL_EXPORTER_OTLP_HEADERS":            {Endpoint: "http://x", Headers: secret.Of("nothing")},
		"OTEL_EXPORTER_OTLP_TIMEOUT":            {Endpoint: "http://x", Timeout: "10s"},
		"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": {Endpoint: "http://x", TracesCompression: "zstd"},
		"OTEL_EXPORTER_OTLP_CERTIFICATE":        {Endpoint: "https://x", CertificateFile: "/nowhere"},
		"OTEL_TRACES_EXPORTER":                  {Endpoint: "http://x", Exporter: "zipkin"},
		"OTEL_TRACES_SAMPLER":                   {Endpoint: "http://x", Sampler: "jaeger_remote"},
		"OTEL_TRACES_SAMPLER_ARG":               {Endpoint: "http://x", Sampler: "traceidratio", SamplerArg: "NaN"},
	} {
		_, err := OpenTracing(cfg, "test", "v1", nil)
		if err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A typing error is found at once, and not only when a collector is added.
func TestABadTraceSettingIsNamedWithoutACollectorToo(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]TraceConfig{
		"OTEL_TRACES_SAMPLER":            {Sampler: "foo"},
		"OTEL_TRACES_SAMPLER_ARG":        {Sampler: "traceidratio", SamplerArg: "2"},
		"OTEL_EXPORTER_OTLP_TIMEOUT":     {Timeout: "soon"},
		"OTEL_EXPORTER_OTLP_COMPRESSION": {Compression: "zstd"},
		"OTEL_EXPORTER_OTLP_HEADERS":     {Headers: secret.Of("nothing")},
	} {
		if _, err := OpenTracing(cfg, "test", "v1", nil); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
		cfg.Disabled = true
		if _, err := OpenTracing(cfg, "test", "v1", nil); err != nil {
			t.Errorf("%s is checked although there is to be no tracing: %v", name, err)
		}
	}
	if _, err := OpenTracing(TraceConfig{Protocol: "grpc", Exporter: "console"}, "test", "v1", nil); err != nil {
		t.Errorf("what is for other programs is refused: %v", err)
	}
}

func TestTracesGoWhereTheSettingsSay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg         TraceConfig
		goes, plain string
	}{
		{TraceConfig{Endpoint: "http://localhost:4318"}, "http://localhost:4318/v1/traces", ""},
		{TraceConfig{Endpoint: "http://x:4318/otlp/"}, "http://x:4318/otlp/v1/traces", "OTEL_EXPORTER_OTLP_ENDPOINT"},
		{TraceConfig{Endpoint: "http://x", TracesEndpoint: "http://y/as/it/is"}, "http://y/as/it/is", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"},
		{TraceConfig{TracesEndpoint: "https://y"}, "https://y/", ""},
	} {
		target, err := c.cfg.Target()
		if err != nil || target.String() != c.goes || c.cfg.Plain() != c.plain {
			t.Errorf("%+v goes to %v, in plain text by %q, %v", c.cfg, target, c.cfg.Plain(), err)
		}
	}
}

func TestTheSamplerKeepsItsPartOfOurIDs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sampler, arg string
		part         float64
	}{
		{"", "", 1}, {"always_on", "", 1}, {"always_off", "", 0}, {"parentbased_always_off", "", 0},
		{"traceidratio", "0.25", .25}, {"parentbased_traceidratio", "0.6", .6}, {"traceidratio", "", 1}, {"traceidratio", "0", 0},
	} {
		s, err := TraceConfig{Sampler: c.sampler, SamplerArg: c.arg}.sampler()
		if err != nil {
			t.Fatal(err)
		}
		const n = 20_000
		kept := 0
		for range n {
			if s.keeps(trace.TraceID(uuid.New())) {
				kept++
			}
		}
		if got := float64(kept) / n; got < c.part-.03 || got > c.part+.03 {
			t.Errorf("%s %s keeps %.3f", c.sampler, c.arg, got)
		}
	}
}

func TestWhetherATraceIsKeptIsDecidedOnce(t *testing.T) {
	t.Parallel()
	url, spans := catch(t)
	tracing := openTracing(t, TraceConfig{Endpoint: url})
	for _, sampled := range []bool{true, false} {
		job, traceID := jobevent.JobID(uuid.New(), sampled), uuid.New()
		if jobevent.Sampled(job) != sampled {
			t.Fatal("the id has forgotten it")
		}
		// The event was published by a clock, so only its job is known.
		published, done := tracing.Publish(t.Context(), OverKafka, []jobevent.Item{ofJob(t, jobevent.TypeRun, "run", job, traceID)})
		done(published, nil)
		_, handling := tracing.Handle(t.Context(), "test", OverKafka, published)
		answer := []jobevent.Item{ofJob(t, jobevent.TypeStatus, "v1", job, traceID)}
		handling.SetParents(answer)
		handling.End(nil)
		for _, e := range append(published, answer...) {
			if got := e.TraceParent(); strings.HasSuffix(got, "-01") != sampled ||
				got[3:35] != hex.EncodeToString(traceID[:]) {
				t.Errorf("sampled %v, and the traceparent is %s", sampled, got)
			}
		}
		ctx, span := tracing.OfJob(t.Context(), traceID, job, "later")
		if trace.SpanContextFromContext(ctx).IsSampled() != sampled {
			t.Errorf("sampled is not %v", sampled)
		}
		span.Done(nil)
	}
	tracing.Close()
	if got := len(spans()); got != 3 {
		t.Errorf("%d spans are kept", got)
	}
}

func TestARepublishedEventHasItsOwnSpan(t *testing.T) {
	t.Parallel()
	url, spans := catch(t)
	tracing := openTracing(t, TraceConfig{Endpoint: url})
	job, traceID := jobevent.JobID(uuid.New(), true), uuid.New()
	ctx, server := tracing.Root(WithTracing(t.Context(), tracing), traceID, "request")
	e := ofJob(t, jobevent.TypeCreated, jobevent.CreatedID(job), job, traceID)
	again := ofJob(t, jobevent.TypeCreated, jobevent.CreatedID(job), job, traceID)
	SetHere(ctx, &e, jobevent.JobSpanID(job))
	for _, e := range []jobevent.Item{e, again, again} {
		published, done := tracing.Publish(t.Context(), OverKafka, []jobevent.Item{e})
		done(nil, errors.New("away"))
		if e.TraceParent() == published[0].TraceParent() {
			t.Error("the event itself was changed, or its copy not")
		}
	}
	server.Done(nil)
	tracing.Close()
	first, ids := hex.EncodeToString(job[8:]), map[string]bool{}
	for _, s := range spans() {
		id := hex.EncodeToString(s.SpanId)
		if ids[id] {
			t.Errorf("two spans have the id %s", id)
		}
		if ids[id] = true; s.Name == "send job-created" && id != first && hex.EncodeToString(s.ParentSpanId) != first {
			t.Errorf("%v stands not below the first", s)
		}
	}
	if len(ids) != 4 || !ids[first] {
		t.Errorf("the spans are %v, without %s", ids, first)
	}
}

// The collector refuses a whole request that contains a text that is not UTF-8.
func TestATextThatIsNotUTF8LosesNoOtherSpan(t *testing.T) {
	t.Parallel()
	url, spans := catch(t)
	tracing := openTracing(t, TraceConfig{Endpoint: url})
	_, request := tracing.Serve(httptest.NewRequest(http.MethodGet, "/%ff", nil), uuid.New(), "")
	request.Answered(http.StatusNotFound)
	_, other := tracing.start(t.Context(), beginning{name: "other", attrs: []attribute.KeyValue{attribute.String("foreign", "a\xffb")}})
	other.End()
	tracing.Close()
	if got := spans(); len(got) != 2 {
		t.Errorf("%d spans came", len(got))
	}
}

func TestACollectorThatIsAwayHoldsUpNothing(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(release) })
	for name, url := range map[string]string{"silent": silent.URL, "gone": "http://127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// With a wait for a single batch this would take half a minute.
			tracing := openTracing(t, TraceConfig{Endpoint: url, Timeout: "60000"})
			tracing.flush = 200 * time.Millisecond
			began := time.Now()
			for range 20_000 { // many times what is queued
				_, span := tracing.Root(t.Context(), uuid.New(), "x")
				span.Done(nil)
			}
			spent := time.Since(began)
			tracing.Close()
			if all := time.Since(began); spent > 10*time.Second || all > spent+tracing.flush+10*time.Second {
				t.Errorf("20000 spans took %s, with the end %s", spent, all)
			}
		})
	}
}

func TestABusyCollectorIsAskedAgainAndARefusalIsNot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		statuses []int
		want     int
	}{{[]int{503}, 1}, {[]int{400}, 0}} {
		url, spans := catch(t, c.statuses...)
		tracing := openTracing(t, TraceConfig{Endpoint: url})
		tracing.otlp.wait = time.Millisecond
		_, span := tracing.Root(t.Context(), uuid.New(), "x")
		span.Done(nil)
		tracing.Close()
		if got := len(spans()); got != c.want {
			t.Errorf("after %v it has %d spans", c.statuses, got)
		}
	}
}

func TestAStatementsSpanHasItsName(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"-- name: JobsInsert :many\ninsert into jobs": "JobsInsert", "begin": "BEGIN", "": "query", "select 'secret'": "SELECT",
	} {
		if got := statement(sql); got != want {
			t.Errorf("%q is %q", sql, got)
		}
	}
	if ctx := Query(context.Background(), "d", "select 1"); ctx != context.Background() {
		t.Error("a statement of no trace has a span")
	}
}

func FuzzParentOf(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01")
	f.Add("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-0f-more")
	f.Add("0000000000000000000000000000000000100000000000000001000")
	f.Add("01-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-more")
	f.Add("00-0AF7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01")
	f.Add("ff-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01")
	f.Fuzz(func(t *testing.T, text string) {
		parent := parentOf(text)
		carrier := propagation.MapCarrier{"traceparent": text}
		other := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(t.Context(), carrier))
		if other.IsValid() && traceParent(other) != traceParent(parent) {
			t.Errorf("%q became %q, OpenTelemetry has %q", text, traceParent(parent), traceParent(other))
		}
		// W3C allows flags of the future in version 00, and OpenTelemetry refuses them.
		if parent.IsValid() && !other.IsValid() && (text[:2] != "00" || text[53:] <= "03") {
			t.Errorf("%q became %q, OpenTelemetry refuses it", text, traceParent(parent))
		}
	})
}
