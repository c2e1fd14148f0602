package apiload

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// Streams are open event streams, which are read all the time.
type Streams struct {
	end  context.CancelFunc
	open sync.WaitGroup
	read atomic.Int64
}

// OpenStreams opens n streams of all jobs, and reads them until they are closed.
func (a *API) OpenStreams(ctx context.Context, streams int) (*Streams, error) {
	ctx, end := context.WithCancel(ctx)
	s := &Streams{end: end}
	endless := &http.Client{Transport: a.http.Transport}
	for range streams {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+"/api/stream", http.NoBody)
		if err != nil {
			return nil, fmt.Errorf("make request: %w", err)
		}
		if a.key != "" {
			req.Header.Set("Authorization", "Bearer "+a.key)
		}
		res, err := endless.Do(req)
		if err != nil {
			s.Close()
			return nil, err
		}
		if res.StatusCode != http.StatusOK {
			res.Body.Close()
			s.Close()
			return nil, fmt.Errorf("open a stream: %s", res.Status)
		}
		s.open.Go(func() {
			defer res.Body.Close()
			n, _ := io.Copy(io.Discard, res.Body) // it ends with ctx
			s.read.Add(n)
		})
	}
	return s, nil
}

// Close closes the streams, and returns how many bytes they had together.
func (s *Streams) Close() int64 {
	s.end()
	s.open.Wait()
	return s.read.Load()
}
