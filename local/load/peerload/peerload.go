// Package peerload puts load on the job systems of local/load/peers through their HTTP servers.
package peerload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// lookEvery is the pause between two reads of the state.
const lookEvery = 20 * time.Millisecond

// Client is the client of one peer, which has just started.
type Client struct {
	base   string
	pushes bool // the peer pushes jobs by its own protocol
	http   *http.Client
	sent   int // jobs so far
}

// New makes a client for the peer at base.
func New(base string, pushes bool) *Client {
	return &Client{base: base, pushes: pushes, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Throughput submits jobs in batches and returns how long it took until all had ended.
func (c *Client) Throughput(ctx context.Context, jobs, clients, batch int) (time.Duration, error) {
	begin := time.Now()
	if c.pushes {
		load := fmt.Sprintf(`{"jobs":%d,"clients":%d,"batch":%d}`, jobs, clients, batch)
		if err := c.post(ctx, "/load", []byte(load)); err != nil {
			return 0, err
		}
	} else {
		all, posting := errgroup.WithContext(ctx)
		all.SetLimit(clients)
		for left := jobs; left > 0; left -= batch {
			body := batchOf(min(left, batch))
			all.Go(func() error { return c.post(posting, "/jobs", body) })
		}
		if err := all.Wait(); err != nil {
			return 0, err
		}
	}
	c.sent += jobs
	err := c.drained(ctx)
	return time.Since(begin), err
}

// Steady submits single jobs at a rate. For each job it returns the time from the instant at which the job was due to
// the start of its handler.
func (c *Client) Steady(ctx context.Context, rate int, duration time.Duration) ([]time.Duration, error) {
	n := int(duration.Seconds() * float64(rate))
	begin := time.Now().Add(lookEvery)
	due := func(i int) time.Time { return begin.Add(time.Duration(i) * time.Second / time.Duration(rate)) }
	all, posting := errgroup.WithContext(ctx)
	for i := range n {
		select {
		case <-time.After(time.Until(due(i))):
		case <-posting.Done():
			return nil, all.Wait()
		}
		all.Go(func() error { return c.post(posting, "/jobs", fmt.Appendf(nil, `{"jobs":[{"num":%d}]}`, i+1)) })
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	c.sent += n
	if err := c.drained(ctx); err != nil {
		return nil, err
	}
	var began map[string]int64
	if err := c.get(ctx, "/starts", &began); err != nil {
		return nil, err
	}
	starts := make([]time.Duration, 0, n)
	for i := range n {
		at, ran := began[strconv.Itoa(i+1)]
		if !ran {
			return nil, fmt.Errorf("job %d has no start", i+1)
		}
		starts = append(starts, time.UnixMicro(at).Sub(due(i)))
	}
	return starts, nil
}

// drained returns once no job is open and the handlers of all have run.
func (c *Client) drained(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		var state struct {
			Open bool `json:"open"`
			Ran  int  `json:"ran"`
		}
		if err := c.get(ctx, "/state", &state); err != nil {
			return err
		}
		if !state.Open && state.Ran >= c.sent {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// batchOf returns the body of a request with n jobs. Only the jobs of Steady have numbers.
func batchOf(n int) []byte {
	return []byte(`{"jobs":[` + strings.TrimSuffix(strings.Repeat(`{"num":0},`, n), ",") + `]}`)
}

func (c *Client) post(ctx context.Context, path string, body []byte) error {
	return c.do(ctx, http.MethodPost, path, bytes.NewReader(body), nil)
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	return c.do(ctx, http.MethodGet, path, http.NoBody, into)
}

func (c *Client) do(ctx context.Context, method, path string, body io.Reader, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s %s", method, path, res.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
