package funchost

import (
	"context"
	"fmt"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Fence names the setting of how long a function keeps the rows by which it recognizes old records. The rows must
// outlive the records: a group that has lost its offsets reads all records that its topics still have.
type Fence struct {
	Setting string
	Age     time.Duration
	Topics  []string
}

const fencePatience = 30 * time.Second

// checkFence asks the brokers once how long they keep records, and warns if that is longer than the rows are kept. The
// setting itself was compared with the retention that `jobweaver topics create` sets, but an operator may have created
// a topic with another one. If the broker is unavailable or refuses to answer, the function goes on.
func (h *host) checkFence(ctx context.Context) {
	fence := h.f.Fence
	ctx, cancel := context.WithTimeout(ctx, fencePatience)
	defer cancel()
	keepings, err := kafkaevent.Keepings(ctx, h.cfg.Kafka, fence.Topics)
	if err != nil {
		telemetry.Logger(ctx).InfoContext(ctx, "cannot find out how long topics keep records", "topics", fence.Topics,
			"setting", fence.Setting, "error", err)
		return
	}
	for _, keeping := range keepings {
		if fence.Age >= keeping.Gone() {
			continue
		}
		atLeast := "no age is enough"
		if keeping.Gone() < kafkaevent.Forever {
			atLeast = keeping.Gone().String()
		}
		telemetry.Logger(ctx).WarnContext(ctx, "old records may take effect again: their topic keeps them for too long",
			"topic", keeping.Topic, "cleanupPolicy", keeping.Policy,
			"retentionMs", keeping.Retention.Milliseconds(), "segmentMs", keeping.Segment.Milliseconds(),
			"setting", fence.Setting, "value", fence.Age.String(), "settingAtLeast", atLeast,
			"topicAtMost", topicAtMost)
	}
}

var topicAtMost = fmt.Sprintf("cleanup.policy=delete retention.ms=%d segment.ms=%d",
	jobevent.MaxRetention.Milliseconds(), jobevent.SegmentAge.Milliseconds())
