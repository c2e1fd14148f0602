package pgpool

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
)

// sharedConns is how many connections a pool of several functions may open, unless pool_max_conns sets another number.
// Each function alone may open four.
const sharedConns = 10

type sharedKey struct{}

// shared has the pools that several functions of a process use.
type shared struct {
	mu    sync.Mutex
	pools map[string]*pgxpool.Pool
}

// Sharing returns a context within which Open and Lazy return one pool for the same address and options: the functions
// of one process need fewer connections together than each by itself. Such a pool may be closed once all who opened it
// have ended.
func Sharing(ctx context.Context) context.Context {
	return context.WithValue(ctx, sharedKey{}, &shared{pools: map[string]*pgxpool.Pool{}})
}

// sharedOf returns nil outside of Sharing.
func sharedOf(ctx context.Context) *shared {
	s, _ := ctx.Value(sharedKey{}).(*shared)
	return s
}

// open returns the pool for an address with this configuration, which it opens at the first call.
func (s *shared) open(
	url string, cfg *pgxpool.Config, open func() (*pgxpool.Pool, error),
) (*pgxpool.Pool, error) {
	if s == nil {
		return open()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprint(url, " ", cfg.ConnConfig.RuntimeParams) // fmt sorts a map
	if pool := s.pools[key]; pool != nil {
		return pool, nil
	}
	if cfg.MaxConns > 1 && !strings.Contains(url, "pool_max_conns") {
		cfg.MaxConns = max(cfg.MaxConns, sharedConns)
	}
	pool, err := open()
	if err == nil {
		s.pools[key] = pool
	}
	return pool, err
}
