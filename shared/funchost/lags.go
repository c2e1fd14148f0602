package funchost

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// Lag is how many records of a topic a function has not yet committed.
type Lag = kafkaevent.Lag

// Lags reads the lag of all functions.
type Lags func(context.Context) ([]Lag, error)

// NewLags makes one for the broker of a function's host; nil where events go through a sink, whose consumer groups are
// not ours. Nothing connects before the first read.
func NewLags(cfg Config) (read Lags, closing func()) {
	if cfg.Sink != "" {
		return nil, func() {}
	}
	lags := kafkaevent.NewLags(cfg.Kafka)
	return lags.Read, lags.Close
}
