package runjob

import (
	"context"

	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// reject publishes a record, or an item of one, that can never be used as a rejected record, with the reason.
func (f *Function) reject(ctx context.Context, d delivered, label string, cause error) {
	m := d.message
	reason := label + ": " + cause.Error()
	telemetry.Logger(ctx).WarnContext(ctx, "record rejected",
		"topic", m.Topic, "partition", m.Partition, "offset", m.Offset,
		"reason", reason, telemetry.FieldTraceID, d.of.TraceID())
	f.meter.Rejected(label)
	one := pool.Finished{Settled: true, From: d.Record}
	about, err := funchost.Rejected(Name, m, d.of, f.cfg.Kafka.Keys, reason)
	if err != nil {
		telemetry.Logger(ctx).ErrorContext(ctx, "event cannot be built", "id", d.of.ID(), "error", err)
	} else {
		one.Events = []jobevent.Item{about}
	}
	f.decided(one)
}
