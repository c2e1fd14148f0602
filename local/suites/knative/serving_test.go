package knative

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/retry"
)

const (
	// idleAfter is how long a process lives after its last request. With Knative it is 60 s plus 30 s.
	idleAfter = 1500 * time.Millisecond
	lookEvery = 100 * time.Millisecond
	// mostReplicas bounds max-scale, because all replicas share this machine.
	mostReplicas = 2
	// softTarget is how many requests a replica has before another one is started, if no limit is set.
	softTarget = 20
)

// service is a Knative Service: its address starts processes when requests come and stops idle ones. A process is
// asked to stop when it gets no more requests; it must still answer those that it has.
type service struct {
	name     string
	program  program
	min, max int
	limit    int // concurrent requests of one process; 0: no limit
	dir      string
	mishaps  *mishaps
	complain func(error)
	ctx      context.Context // of the fixture
	way      http.RoundTripper

	mu       sync.Mutex
	replicas []*replica
	coming   chan struct{} // closed when the start of a process has succeeded or failed; nil: none is starting
	started  int           // processes, ever
	opened   bool
	closed   bool
	stopping sync.WaitGroup
}

type replica struct {
	*process
	seats chan struct{} // nil: no limit
	gone  chan struct{} // closed when it gets no more requests
	busy  int           // requests
	used  time.Time
}

var errClosed = errors.New("the fixture is closed")

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to, leave, err := s.seat(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	target, err := url.Parse(to.url)
	if err != nil {
		panic(err) // our own
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(target) },
		Transport: s.way,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				s.complain(fmt.Errorf("%s did not answer: %w", to.name, err))
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	proxy.ServeHTTP(w, r)
}

// seat returns a process that has room for a request. A stopping process keeps the requests that it works on;
// requests that wait for it go elsewhere, as Knative's queue-proxy lets no request wait for a stopped process.
func (s *service) seat(ctx context.Context) (to *replica, leave func(), err error) {
	for {
		to, err := s.acquire(ctx)
		if err != nil {
			return nil, nil, err
		}
		if to.seats == nil {
			return to, func() { s.release(to) }, nil
		}
		select {
		case to.seats <- struct{}{}:
			return to, func() { <-to.seats; s.release(to) }, nil
		case <-to.gone:
			s.release(to)
		case <-ctx.Done():
			s.release(to)
			return nil, nil, ctx.Err()
		}
	}
}

// open makes the service accept requests: from now on its program is known.
func (s *service) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = true
}

// acquire returns the least busy process; if there is none, or too few, one is started.
func (s *service) acquire(ctx context.Context) (*replica, error) {
	for {
		s.mu.Lock()
		if s.closed || !s.opened {
			s.mu.Unlock()
			return nil, errClosed
		}
		target := softTarget
		if s.limit > 0 {
			target = s.limit
		}
		var least *replica
		for _, r := range s.replicas {
			if least == nil || r.busy < least.busy {
				least = r
			}
		}
		if least == nil || least.busy >= target && len(s.replicas) < s.max {
			s.scaleUp()
		}
		if least != nil {
			least.busy++
			s.mu.Unlock()
			return least, nil
		}
		coming := s.coming
		s.mu.Unlock()
		select {
		case <-coming:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// scaleUp starts one more process, unless one is starting. The lock is held.
func (s *service) scaleUp() {
	if s.coming != nil {
		return
	}
	s.started++
	number, coming := s.started, make(chan struct{})
	s.coming = coming
	s.stopping.Go(func() {
		one, err := s.program.start(s.ctx, s.dir, number)
		s.mu.Lock()
		defer s.mu.Unlock()
		defer close(coming)
		s.coming = nil
		if err != nil {
			if s.ctx.Err() == nil {
				s.complain(err)
				s.closed = true // otherwise each request would start another
			}
			return
		}
		r := &replica{process: one, gone: make(chan struct{}), used: time.Now()}
		if s.limit > 0 {
			r.seats = make(chan struct{}, s.limit)
		}
		s.replicas = append(s.replicas, r)
	})
}

func (s *service) release(r *replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.busy--
	r.used = time.Now()
}

// scale stops idle processes, and sometimes busy ones, until ctx ends.
func (s *service) scale(ctx context.Context) {
	for retry.Pause(ctx, lookEvery) {
		s.mu.Lock()
		for _, r := range slices.Clone(s.replicas) {
			idle := r.busy == 0 && time.Since(r.used) > idleAfter && len(s.replicas) > s.min
			if busy := r.busy > 0 && s.mishaps.happens(scaledDown); idle || busy {
				s.retire(r)
			}
		}
		for len(s.replicas) < s.min && s.coming == nil && !s.closed {
			s.scaleUp()
		}
		s.mu.Unlock()
	}
}

// retire stops a process, which gets no more requests. The lock is held.
func (s *service) retire(r *replica) {
	s.replicas = slices.DeleteFunc(s.replicas, func(other *replica) bool { return other == r })
	close(r.gone)
	s.stopping.Go(func() {
		if err := r.stop(s.program.grace); err != nil {
			s.complain(err)
		}
	})
}

// close stops all processes.
func (s *service) close() {
	s.mu.Lock()
	s.closed = true
	for _, r := range slices.Clone(s.replicas) {
		s.retire(r)
	}
	s.mu.Unlock()
	s.stopping.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range slices.Clone(s.replicas) { // also one that was started meanwhile
		s.retire(r)
	}
	s.mu.Unlock()
	s.stopping.Wait()
	s.mu.Lock()
}

// starts returns how many processes were started.
func (s *service) starts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// running reports whether a process runs or is starting.
func (s *service) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.replicas) > 0 || s.coming != nil
}
