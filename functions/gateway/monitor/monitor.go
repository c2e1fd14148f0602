// Package monitor serves what operators watch: health, statistics, the lag of topics, and workers.
package monitor

import (
	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// API is the endpoints for operators.
type API struct {
	Stats    *statstore.Store
	Controls *controlstore.Store
	Workers  *workerstore.Store
	Broker   *Broker
	Lags     *Lags
	Auth     *edge.Authenticator
	Audit    *audit.Log
	Sealer   *sealing.Sealer
	Unserved *telemetry.Trouble // of requests that are answered with 503
}
