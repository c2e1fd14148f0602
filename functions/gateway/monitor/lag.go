package monitor

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// lagAge is how old the lag may be: a read asks the brokers for all groups.
	lagAge = 5 * time.Second
	// lagPatience limits one read.
	lagPatience = 3 * time.Second
)

// Lags caches the last answer of the brokers, including a failure.
type Lags struct {
	read    funchost.Lags // nil: this gateway has no broker
	trouble telemetry.Trouble

	mu   sync.Mutex
	last client.Lag
}

// NewLags makes a cache of the lags that read returns; nil: there are none.
func NewLags(read funchost.Lags) *Lags {
	return &Lags{read: read, trouble: telemetry.Trouble{What: "read the lag of topics"}}
}

// get reads at most once in lagAge. Requests that arrive during a read wait for it.
func (l *Lags) get(ctx context.Context) client.Lag {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.last.At) < lagAge {
		return l.last
	}
	l.last = client.Lag{At: time.Now().UTC()}
	if l.read == nil {
		return l.last
	}
	var found []funchost.Lag
	err := edge.Within(context.WithoutCancel(ctx), lagPatience, func(ctx context.Context) (err error) {
		found, err = l.read(ctx)
		return err
	})
	if l.trouble.Note(ctx, err); err != nil {
		return l.last
	}
	l.last.Topics = make([]client.TopicLag, len(found))
	for i, lag := range found {
		l.last.Topics[i] = client.TopicLag(lag)
	}
	return l.last
}

// GetLag is GET /api/lag.
func (a *API) GetLag(c *gin.Context) error {
	return edge.Answer(c, http.StatusOK, a.Lags.get(c.Request.Context()))
}
