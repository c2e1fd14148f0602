package telemetry

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func TestALineCarriesTheFieldsOfItsContext(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger, err := NewLogger(&out, "info", "json")
	if err != nil {
		t.Fatal(err)
	}
	ctx := With(WithLogger(t.Context(), logger), FieldService, "ingest")
	ctx = With(ctx, FieldTraceID, "a trace", FieldJobID, "a job")
	Logger(ctx).Debug("not this")
	Logger(ctx).Info("this")
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{"msg": "this", "service": "ingest", "traceId": "a trace", "jobId": "a job"} {
		if line[field] != want {
			t.Errorf("%s is %v, want %s", field, line[field], want)
		}
	}
}

// It sets the process's logger, and so runs alone.
func TestSlogLogsThroughItsContextsLogger(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	var process, own bytes.Buffer
	logger, err := NewLogger(&process, "", "text")
	if err != nil {
		t.Fatal(err)
	}
	SetDefault(logger.With("from", "process"))
	other, err := NewLogger(&own, "", "text")
	if err != nil {
		t.Fatal(err)
	}
	slog.InfoContext(t.Context(), "one")
	slog.InfoContext(With(t.Context(), "with", "a field"), "two")
	slog.InfoContext(With(WithLogger(t.Context(), other), "from", "context"), "three")
	for _, want := range []string{`msg=one from=process`, `msg=two from=process with="a field"`} {
		if !strings.Contains(process.String(), want) {
			t.Errorf("no %s in %s", want, &process)
		}
	}
	if !strings.Contains(own.String(), "msg=three from=context") || strings.Contains(process.String(), "three") {
		t.Errorf("%s and %s", &own, &process)
	}
}

type job string

func (j job) LogFields() []any { return []any{FieldJobID, string(j)} }

func TestALazyContextsLinesCarryItsFields(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger, err := NewLogger(&out, "", "text")
	if err != nil {
		t.Fatal(err)
	}
	type key struct{}
	ctx := context.WithValue(WithLogger(t.Context(), logger.With("service", "worker")), key{}, 1)
	ctx, cancel := context.WithCancel(WithLazy(ctx, job("j1")))
	defer cancel()
	Logger(ctx).Info("one")
	Logger(With(ctx, "attempt", 2)).Info("two")
	for _, want := range []string{"msg=one service=worker jobId=j1\n", "msg=two service=worker jobId=j1 attempt=2\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %s", want, out.String())
		}
	}
	if ctx.Value(key{}) != 1 {
		t.Error("what the context carried is gone")
	}
}

func TestABadLogSettingIsNamed(t *testing.T) {
	t.Parallel()
	if _, err := NewLogger(nil, "loud", ""); err == nil || !strings.HasPrefix(err.Error(), "LOG_LEVEL: ") {
		t.Errorf("error %v", err)
	}
	if _, err := NewLogger(nil, "", "xml"); err == nil || !strings.HasPrefix(err.Error(), "LOG_FORMAT: ") {
		t.Errorf("error %v", err)
	}
	if Logger(context.Background()) == nil {
		t.Error("no logger")
	}
}

func TestMetricsHaveFewSeries(t *testing.T) {
	t.Parallel()
	function := rand.Text() // a run of its own
	m := NewMeter(function)
	m.Runs("v1")
	known, err := jobevent.New(jobevent.TypeCreated, jobevent.Meta{Function: "test", ID: "1"}, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	foreign := event.New()
	foreign.SetType("com.example.anything")
	m.Handled([]event.Event{known, known, foreign}, time.Millisecond, nil)
	m.Handled([]event.Event{known}, time.Millisecond, errors.New("away"))
	m.Said([]event.Event{known}, time.Millisecond, nil)
	m.Said(nil, time.Millisecond, errors.New("away"))
	m.Ticked(time.Millisecond, errors.New("away"))
	m.Rejected(RejectedPanic)
	m.Refused(known)

	answer := httptest.NewRecorder()
	MetricsHandler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`jobweaver_build_info{function="counted",version="v1"} 1`,
		`jobweaver_events_handled_total{function="counted",type="io.jobweaver.job.created.v1"} 2`,
		`jobweaver_events_handled_total{function="counted",type="other"} 1`,
		`jobweaver_events_said_total{function="counted",type="io.jobweaver.job.created.v1"} 1`,
		`jobweaver_events_rejected_total{function="counted",reason="panic"} 1`,
		`jobweaver_events_refused_total{function="counted",type="io.jobweaver.job.created.v1"} 1`,
		`jobweaver_handle_errors_total{function="counted"} 1`,
		`jobweaver_handle_batch_size_sum{function="counted"} 4`,
		`jobweaver_publish_errors_total{function="counted"} 1`,
		`jobweaver_tick_errors_total{function="counted"} 1`,
	} {
		want = strings.ReplaceAll(want, "counted", function)
		if !strings.Contains(answer.Body.String(), want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(answer.Body.String(), "com.example") {
		t.Error("a foreign type became a label")
	}
}
