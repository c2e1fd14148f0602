package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
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

func TestALineHasNoEmptyFieldsAndOneFormOfADuration(t *testing.T) {
	t.Parallel()
	line := logged(t, func(logger *slog.Logger) {
		logger.Info("function runs", "error", nil, "error2", error(nil), "topics", []string(nil), "sink", "",
			"grace", 25*time.Second, "tries", 0, "kept", false)
	})
	want := `{"level":"INFO","msg":"function runs","grace":"25s","tries":0,"kept":false}`
	if line != want {
		t.Errorf("logged %s, want %s", line, want)
	}
}

func TestALineHasOneTraceID(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*slog.Logger){
		"of the logger and the line": func(l *slog.Logger) { l.With(FieldTraceID, "a").Info("m", "x", 1, FieldTraceID, "b") },
		"of the logger twice":        func(l *slog.Logger) { l.With(FieldTraceID, "a").With(FieldTraceID, "b").Info("m", "x", 1) },
		"of the line twice":          func(l *slog.Logger) { l.Info("m", FieldTraceID, "a", "x", 1, FieldTraceID, "a") },
		"of the line":                func(l *slog.Logger) { l.Info("m", "x", 1, FieldTraceID, "a") },
	} {
		line := logged(t, write)
		if strings.Count(line, `"traceId":"a"`) != 1 || strings.Count(line, "traceId") != 1 || !strings.Contains(line, `"x":1`) {
			t.Errorf("%s: %s", name, line)
		}
	}
}

// logged returns a line without its time.
func logged(t *testing.T, write func(*slog.Logger)) string {
	t.Helper()
	var out bytes.Buffer
	logger, err := NewLogger(&out, "", "")
	if err != nil {
		t.Fatal(err)
	}
	write(logger)
	_, line, _ := strings.Cut(strings.TrimSpace(out.String()), ",")
	return "{" + line
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
