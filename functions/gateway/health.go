package gateway

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/singleflight"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
)

// What a health check may take: whoever asks does not wait for long.
const (
	databasePatience = 2 * time.Second
	brokerPatience   = time.Second
)

const (
	up       = "UP"
	degraded = "DEGRADED" // jobs are accepted, and run when the broker is back
	down     = "DOWN"
)

type healthBody struct {
	Status     string           `json:"status"`
	Components healthComponents `json:"components"`
}

type healthComponents struct {
	Job   jobHealth `json:"job"`
	DB    component `json:"db"`
	Kafka component `json:"kafka"`
}

type component struct {
	Status string `json:"status"`
}

type jobHealth struct {
	Status  string      `json:"status"`
	Details *jobDetails `json:"details"` // null where the database is away, or who asks is not the installation
}

type jobDetails struct {
	PendingJobs   int64 `json:"pendingJobs"`
	DeadJobs      int64 `json:"deadJobs"`
	ActiveThreads int64 `json:"activeThreads"`
	PoolSize      int64 `json:"poolSize"`
}

// health is GET /api/health. It is for everybody; its figures, which count all owners' jobs, are not.
func (f *Function) health(c *gin.Context) error {
	body := healthBody{Status: up, Components: healthComponents{
		Job: jobHealth{Status: up}, DB: component{Status: up}, Kafka: component{Status: up},
	}}
	ctx := c.Request.Context()
	if f.broker.ask(ctx) != nil {
		body.Status, body.Components.Kafka.Status = degraded, down
	}
	var figures statstore.Health
	err := within(ctx, databasePatience, func(ctx context.Context) (err error) {
		figures, err = f.store.stats.Health(ctx)
		return err
	})
	if err != nil {
		f.unserved.Note(ctx, err, "path", "/api/health")
		body.Status, body.Components.DB.Status, body.Components.Job.Status = down, down, down
		c.JSON(http.StatusServiceUnavailable, body)
		return nil
	}
	p, err := f.who(c)
	if err != nil { // a wrong key counts here as anywhere
		var slow edge.SlowDownError
		if errors.As(f.limits.CountFailure(c, err), &slow) {
			return slow
		}
	}
	if err == nil && p.May(access.Installation) {
		body.Components.Job.Details = &jobDetails{
			PendingJobs: figures.PendingJobs, DeadJobs: figures.DeadJobs,
			ActiveThreads: figures.ActiveThreads, PoolSize: figures.PoolSize,
		}
	}
	c.JSON(http.StatusOK, body)
	return nil
}

// brokerAge is how old the broker's answer may be: each ask is a connection to it.
const brokerAge = time.Second

// brokerAnswer asks the broker for all who want to know at the same time, once a second at most.
type brokerAnswer struct {
	asks   func(context.Context) error
	flight singleflight.Group
	last   atomic.Pointer[answered]
}

type answered struct {
	err error
	at  time.Time
}

func (b *brokerAnswer) ask(ctx context.Context) error {
	if last := b.lately(); last != nil {
		return last.err
	}
	_, err, _ := b.flight.Do("", func() (any, error) {
		if last := b.lately(); last != nil { // of a flight that ended after this request had looked
			return nil, last.err
		}
		err := within(context.WithoutCancel(ctx), brokerPatience, b.asks)
		b.last.Store(&answered{err, time.Now()})
		return nil, err
	})
	return err
}

// lately is the last answer, while it is fresh.
func (b *brokerAnswer) lately() *answered {
	if last := b.last.Load(); last != nil && time.Since(last.at) < brokerAge {
		return last
	}
	return nil
}

func within(ctx context.Context, patience time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return ask(ctx)
}
