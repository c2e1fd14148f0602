// Package telemetry has the functions' structured logs, with the logger in the context, the metrics
// that more than one function counts, and their traces.
package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Fields that log lines share, so that one search finds them all.
const (
	FieldService = "service"
	FieldTraceID = "traceId"
	FieldJobID   = "jobId"
	FieldAttempt = "attempt"
)

type loggerKey struct{}

// FieldsOf returns the fields of a line about an item: its type and id, its trace and its job.
func FieldsOf(e jobevent.Item) []any {
	if e.Type() == "" {
		return nil
	}
	fields := []any{"type", e.Type(), "id", e.ID()}
	if id := e.TraceID(); id != uuid.Nil {
		fields = append(fields, FieldTraceID, id)
	}
	if job := e.JobID(); job != uuid.Nil {
		fields = append(fields, FieldJobID, job)
	}
	return fields
}

// NewLogger makes a logger. level is debug, info, warn or error; empty means info. format is json or
// text; empty means json.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var least slog.Level
	switch strings.ToLower(level) {
	case "debug":
		least = slog.LevelDebug
	case "info", "":
		least = slog.LevelInfo
	case "warn":
		least = slog.LevelWarn
	case "error":
		least = slog.LevelError
	default:
		return nil, fmt.Errorf("LOG_LEVEL: %q is none of debug, info, warn, error", level)
	}
	options := &slog.HandlerOptions{Level: least, ReplaceAttr: plain}
	var handler slog.Handler
	switch strings.ToLower(format) {
	case "json", "":
		handler = slog.NewJSONHandler(w, options)
	case "text":
		handler = slog.NewTextHandler(w, options)
	default:
		return nil, fmt.Errorf("LOG_FORMAT: %q is neither json nor text", format)
	}
	return slog.New(tracedOnce{handler, false}), nil
}

// plain writes a duration as 30s in every format, and omits a field that is null or empty.
func plain(_ []string, field slog.Attr) slog.Attr {
	switch field.Value.Kind() { //nolint:exhaustive // the others are written as they are
	case slog.KindDuration:
		return slog.String(field.Key, field.Value.Duration().String())
	case slog.KindString:
		if field.Value.String() == "" {
			return slog.Attr{}
		}
	case slog.KindAny:
		if list, ok := field.Value.Any().([]string); field.Value.Any() == nil || ok && len(list) == 0 {
			return slog.Attr{}
		}
	}
	return field
}

// tracedOnce writes one traceId a line. A line about an event has the event's, and the logger of the request may have
// it already; some JSON readers refuse an object that has a name twice.
type tracedOnce struct {
	slog.Handler
	traced bool // the handler adds a traceId to each line
}

func isTraceID(field slog.Attr) bool { return field.Key == FieldTraceID }

// WithAttrs is slog.Handler's.
func (h tracedOnce) WithAttrs(fields []slog.Attr) slog.Handler {
	if h.traced {
		fields = slices.DeleteFunc(slices.Clone(fields), isTraceID)
	}
	return tracedOnce{h.Handler.WithAttrs(fields), h.traced || slices.ContainsFunc(fields, isTraceID)}
}

// WithGroup is slog.Handler's.
func (h tracedOnce) WithGroup(name string) slog.Handler {
	return tracedOnce{h.Handler.WithGroup(name), h.traced}
}

// Handle is slog.Handler's.
func (h tracedOnce) Handle(ctx context.Context, r slog.Record) error {
	line, seen := slog.NewRecord(r.Time, r.Level, r.Message, r.PC), h.traced
	r.Attrs(func(field slog.Attr) bool {
		if isTraceID(field) && seen {
			return true
		}
		seen = seen || isTraceID(field)
		line.AddAttrs(field)
		return true
	})
	return h.Handler.Handle(ctx, line)
}

// SetDefault makes logger the process's logger. A call of slog with a context (slog.InfoContext) then uses
// the context's logger, with its fields, if there is one.
func SetDefault(logger *slog.Logger) {
	slog.SetDefault(slog.New(routed{logger.Handler()}))
}

// WithLogger puts a logger into the context.
func WithLogger(ctx context.Context, logger *slog.Logger) context.Context {
	return context.WithValue(ctx, loggerKey{}, logger)
}

// Logger returns the context's logger, or the process's.
func Logger(ctx context.Context) *slog.Logger {
	if logger := loggerOf(ctx); logger != nil {
		return logger
	}
	return slog.Default()
}

// loggerOf returns nil if the context has no logger.
func loggerOf(ctx context.Context) *slog.Logger {
	switch logger := ctx.Value(loggerKey{}).(type) {
	case *slog.Logger:
		return logger
	case *lazy:
		return logger.get()
	}
	return nil
}

// With adds fields to the context's logger.
func With(ctx context.Context, args ...any) context.Context {
	return WithLogger(ctx, Logger(ctx).With(args...))
}

// WithLazy is With for contexts that are made in large numbers and rarely log: it reads the fields when
// the logger is first used.
func WithLazy(ctx context.Context, fields interface{ LogFields() []any }) context.Context {
	return context.WithValue(ctx, loggerKey{}, &lazy{from: Logger(ctx), fields: fields})
}

// lazy is a logger that is made when it is first used.
type lazy struct {
	from   *slog.Logger
	fields interface{ LogFields() []any }
	once   sync.Once
	logger *slog.Logger
}

func (l *lazy) get() *slog.Logger {
	l.once.Do(func() { l.logger = l.from.With(l.fields.LogFields()...) })
	return l.logger
}

// routed passes a record to the logger of its context.
type routed struct{ slog.Handler }

// Handle is slog.Handler's.
func (h routed) Handle(ctx context.Context, r slog.Record) error {
	if logger := loggerOf(ctx); logger != nil {
		if _, itself := logger.Handler().(routed); !itself {
			return logger.Handler().Handle(ctx, r)
		}
	}
	return h.Handler.Handle(ctx, r)
}
