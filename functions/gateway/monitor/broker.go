package monitor

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
)

// brokerAge is how old the broker's last answer may be: each check opens a connection.
const brokerAge = time.Second

// Broker checks the broker once for all concurrent health requests, and at most once a second.
type Broker struct {
	connect func(context.Context) error
	flight  singleflight.Group
	last    atomic.Pointer[answered]
}

type answered struct {
	err error
	at  time.Time
}

// NewBroker makes a check that calls connect.
func NewBroker(connect func(context.Context) error) *Broker { return &Broker{connect: connect} }

func (b *Broker) ask(ctx context.Context) error {
	if last := b.lately(); last != nil {
		return last.err
	}
	_, err, _ := b.flight.Do("", func() (any, error) {
		if last := b.lately(); last != nil { // another check has ended since this request looked
			return nil, last.err
		}
		err := edge.Within(context.WithoutCancel(ctx), brokerPatience, b.connect)
		b.last.Store(&answered{err, time.Now()})
		return nil, err
	})
	return err
}

// lately returns the last answer while it is fresh.
func (b *Broker) lately() *answered {
	if last := b.last.Load(); last != nil && time.Since(last.at) < brokerAge {
		return last
	}
	return nil
}
