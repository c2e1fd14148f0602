// Package gateway is JobWeaver's door: REST and CloudEvents in, jobs as they stand out. What it answers
// with 2xx is committed in the API's database; telling the others is tried once, and after that
// projection's.
package gateway

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// Config is what an installation allows, and how long the host serves HTTP after it was told to stop.
type Config struct {
	Queues   []string // that a job may name
	JobTypes []string // beside the built-in ones; "*" allows every name
	Linger   time.Duration
}

// Gateway serves HTTP and says what it has accepted.
type Gateway struct {
	store   *apidb.Store
	rules   jobspec.Rules
	broker  func(context.Context) error
	linger  time.Duration
	stage   *stage
	endings *endings
	keeping sync.RWMutex // held for reading from a commit until its events are on the stage
	grumble sometimes
}

// New builds a gateway on its store. broker asks whether the broker (or the sink) can be reached; it
// counts for the health page only.
func New(cfg Config, store *apidb.Store, broker func(context.Context) error) *Gateway {
	return &Gateway{
		store:   store,
		rules:   jobspec.Rules{Queues: cfg.Queues, JobTypes: cfg.JobTypes},
		broker:  broker,
		linger:  cfg.Linger,
		stage:   newStage(),
		endings: newEndings(store.Ended),
	}
}

// Run says what was accepted and wakes those who wait for a job's end. When ctx ends it lets the waiting
// go at once, and goes on saying until no request is left that could add to it.
func (g *Gateway) Run(ctx context.Context, say funchost.Publish) error {
	served, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var all errgroup.Group
	all.Go(func() error { g.endings.run(ctx); return nil })
	all.Go(func() error { g.stage.run(served, say); return nil })
	<-ctx.Done()
	time.Sleep(g.linger)
	g.keeping.Lock() // the last of them have added theirs
	defer g.keeping.Unlock()
	stop()
	return all.Wait()
}
