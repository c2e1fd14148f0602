package funchost

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// Lag is the number of records of a topic that a function has not committed.
type Lag = kafkaevent.Lag

// Lags reads the lag of all functions.
type Lags func(context.Context) ([]Lag, error)

// NewLags returns the Lags of a function's broker; nil if events go through a sink, whose consumer groups belong to
// another system. It connects with the first read.
func NewLags(cfg Config) (read Lags, closing func()) {
	if cfg.Sink != "" {
		return nil, func() {}
	}
	lags := kafkaevent.NewLags(cfg.Kafka)
	return lags.Read, lags.Close
}
