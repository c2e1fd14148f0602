package funchost

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

var errNoTable = errors.New(`relation "dispatch_state" does not exist`)

// The database answers all the time: only the work fails.
func TestReadinessFollowsTheWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, reason string
		function     func(p *place, fails *atomic.Bool) Function
	}{
		{"Handle fails", "handling events fails", func(p *place, fails *atomic.Bool) Function {
			return p.function(func(context.Context, []jobevent.Item) ([]jobevent.Item, error) {
				if fails.Load() {
					return nil, errNoTable
				}
				return nil, nil
			})
		}},
		{"Tick fails", "its ticks fail", func(_ *place, fails *atomic.Bool) Function {
			return Function{Topics: []string{}, Tick: func(context.Context) ([]jobevent.Item, time.Duration, error) {
				if fails.Load() {
					return nil, 0, errNoTable
				}
				return nil, 10 * time.Millisecond, nil
			}}
		}},
		{"the work of Run fails", "its work fails", func(_ *place, fails *atomic.Bool) Function {
			return Function{Topics: []string{}, Failing: fails.Load}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.cfg.ReadinessGrace, p.cfg.Ticks = 200*time.Millisecond, ticksOn
			var fails atomic.Bool
			f := c.function(p, &fails)
			f.Ready = func(context.Context) error { return nil }
			s := p.site(f)
			s.untilReadiness(200)
			fails.Store(true)
			p.send(0, 1)
			// With a grace this short, a broker that answers late on a busy machine can be the first reason for a moment.
			if got := s.untilReadinessWith(503, c.reason); strings.Contains(got.body, "relation") {
				t.Errorf("answered %+v", got)
			}
			if got := s.do("GET", "/health/liveness", ""); got.status != 200 {
				t.Errorf("liveness answered %+v", got)
			}
			fails.Store(false)
			s.untilReadiness(200)
		})
	}
}

// Another member of the group handles the records now, and this one has no records whose success could end the failure.
func TestFailuresOfRevokedRecordsAreNotCounted(t *testing.T) {
	t.Parallel()
	p := placeOn(t, []string{"127.0.0.1:1"})
	consumer, err := kafkaevent.NewBatchConsumer(p.cfg.Kafka, p.name, []string{jobevent.RunTopic(p.in)}, 1)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{consumer: consumer}
	h.handling.Note(t.Context(), errNoTable)
	if !h.handling.Ongoing() || h.handlingFails() {
		t.Error("a process without partitions is reported as failing")
	}
}
