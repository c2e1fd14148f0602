package monitor

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
)

// The time limits of the parts of a health check: its callers have short timeouts.
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
	Reason string `json:"reason,omitempty"` // why it is DOWN
}

type jobHealth struct {
	Status  string      `json:"status"`
	Details *jobDetails `json:"details"` // null if the database is away, or if the request is not the installation's
}

type jobDetails struct {
	PendingJobs   int64 `json:"pendingJobs"`
	DeadJobs      int64 `json:"deadJobs"`
	ActiveThreads int64 `json:"activeThreads"`
	PoolSize      int64 `json:"poolSize"`
	NoWorkerTypes int   `json:"jobTypesWithoutWorker"`
}

// GetHealth is GET /api/health. It is public, but its counts are not: they cover the jobs of all owners.
func (a *API) GetHealth(c *gin.Context) error {
	body := healthBody{Status: up, Components: healthComponents{
		Job: jobHealth{Status: up}, DB: component{Status: up}, Kafka: component{Status: up},
	}}
	ctx := c.Request.Context()
	if a.Broker.ask(ctx) != nil {
		body.Status, body.Components.Kafka = degraded, component{Status: down, Reason: "no broker answers"}
	}
	var figures statstore.Health
	err := edge.Within(ctx, databasePatience, func(ctx context.Context) (err error) {
		figures, err = a.Stats.Health(ctx)
		return err
	})
	if err != nil {
		a.Unserved.Note(ctx, err, "path", "/api/health")
		body.Status, body.Components.Job.Status = down, down
		body.Components.DB = component{Status: down, Reason: edge.Public(err).Message}
		return edge.Answer(c, http.StatusServiceUnavailable, body)
	}
	p, err := a.Auth.Principal(c)
	if err != nil { // a wrong key counts here as anywhere
		var slow edge.SlowDownError
		if errors.As(a.Auth.Limits.CountFailure(c, err), &slow) {
			return slow
		}
	}
	if err == nil && p.May(access.Installation) {
		unserved, err := a.withoutWorker(ctx, apidb.Everyone)
		if err != nil {
			return err
		}
		body.Components.Job.Details = &jobDetails{
			PendingJobs: figures.PendingJobs, DeadJobs: figures.DeadJobs,
			ActiveThreads: figures.ActiveThreads, PoolSize: figures.PoolSize, NoWorkerTypes: len(unserved),
		}
	}
	return edge.Answer(c, http.StatusOK, body)
}
