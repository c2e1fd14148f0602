package runjob

import (
	"context"
	"log/slog"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// reject passes a record that can never be used on to the dead letters, with the reason.
func (f *Function) reject(ctx context.Context, d delivered, traceID uuid.UUID, label string, cause error) {
	m := d.message
	reason := label + ": " + cause.Error()
	slog.WarnContext(ctx, "record rejected", "topic", m.Topic, "partition", m.Partition, "offset", m.Offset,
		"reason", reason, telemetry.FieldTraceID, traceID)
	f.meter.Rejected(label)
	one := finished{settled: true, from: d.record}
	e, err := funchost.RejectedEvent(Name, m, traceID, reason)
	if err != nil {
		slog.ErrorContext(ctx, "event cannot be made", "id", e.ID(), "error", err)
	} else {
		one.events = []event.Event{e}
	}
	f.decided(one)
}
