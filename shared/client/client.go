// Package client is the Go client of JobWeaver's HTTP API: it submits jobs, waits for them, follows them and controls
// them, and it verifies the webhooks that report their ends.
//
// A Client may be used by many goroutines at once. Every call ends at once with its context.
//
// # What is tried again
//
// A request is repeated only if nothing can happen twice: a request that reads; a request with an Idempotency-Key
// (Submit, SubmitBatch and RunAgain add a key to each job without one, and reuse it); a request for which no connection
// could be made; and a request that the gateway refused without having done anything (408, 429). The pauses grow, are
// partly random, and are at least as long as Retry-After or RateLimit request. If RateLimit reports that nothing is
// left, the next request waits until the limit allows it.
//
// Why types are written by hand here: docs/decisions/code.md#clients-have-generated-types-and-calls-written-by-hand
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// Version is the version of the API that this client was written for: info.version of its contract.
const Version = "0.1.0"

// Client talks to one gateway. Its methods are about jobs, its fields about all else.
type Client struct {
	Batches      Batches
	Flows        Flows
	Schedules    Schedules
	Alerts       Alerts
	Queues       Queues
	Controls     Controls
	Operations   Operations
	Dead         Dead
	Deliveries   Deliveries
	Rejected     Rejected
	JobTypes     JobTypes
	Workers      Workers
	Hooks        Hooks
	Keys         Keys
	Audit        Audit
	Installation Installation

	base    string
	key     string
	http    *http.Client
	retries int
	pace    pace

	answered atomic.Bool // the gateway has answered at least once
}

// Option configures a new client.
type Option func(*Client)

// WithTransport replaces the transport, for example by one with certificates. The default one is http.DefaultTransport
// as it is when the client is made, which also leaves a connection by HTTP/2 within 20 s if the gateway stands still.
func WithTransport(transport http.RoundTripper) Option {
	return func(c *Client) { c.http.Transport = transport }
}

// WithTimeout bounds each single request; the default is 2 min. Streams have no timeout.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.http.Timeout = d } }

// WithRetries sets how often a request that may be repeated is repeated at most; the default is 4. After a 429 a
// request is repeated more often, for up to 30 s.
func WithRetries(n int) Option { return func(c *Client) { c.retries = n } }

// FromEnv makes a client of the gateway in JOBWEAVER_URL, or at http://localhost:8080, with the key in
// JOBWEAVER_API_KEY.
func FromEnv(options ...Option) *Client {
	return New(cmp.Or(os.Getenv("JOBWEAVER_URL"), "http://localhost:8080"), os.Getenv("JOBWEAVER_API_KEY"), options...)
}

// New makes a client for the gateway at base, such as http://localhost:8080, with an API key or token; empty: none.
// The client follows no redirect: net/http would send X-Callback-Secret and the body to any host that the answer names.
func New(base, key string, options ...Option) *Client {
	c := &Client{base: strings.TrimRight(base, "/"), key: key, retries: defaultRetries, http: &http.Client{
		Transport:     transport(),
		Timeout:       2 * time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for _, option := range options {
		option(c)
	}
	c.Alerts = Alerts{c: c}
	c.Batches, c.Flows, c.Schedules, c.Queues, c.Controls = Batches{c}, Flows{c}, Schedules{c: c}, Queues{c}, Controls{c}
	c.Operations, c.Dead, c.Deliveries, c.Rejected = Operations{c}, Dead{c}, Deliveries{c}, Rejected{c}
	c.JobTypes, c.Workers, c.Hooks, c.Keys, c.Audit = JobTypes{c}, Workers{c}, Hooks{c}, Keys{c}, Audit{c}
	c.Installation = Installation{c}
	return c
}

// request is a request to the gateway.
type request struct {
	method, path, contentType string

	body       []byte
	headers    []string // pairs
	repeatable bool     // sending it twice does no harm
	jobs       bool     // it submits some

	header *http.Header // receives the header of the answer; nil: it is not needed
}

// Do sends a request for which this package has no method, and decodes the answer into out if out is not nil. headers
// are pairs of names and values. The request is repeated as the package comment describes; a POST, PATCH or DELETE only
// if it has an Idempotency-Key or nothing was done. The error is an *Error, or describes why the gateway could not be
// reached.
func (c *Client) Do(
	ctx context.Context, method, path, contentType string, body []byte, out any, headers ...string,
) (json.RawMessage, error) {
	return c.do(ctx, request{method: method, path: path, contentType: contentType, body: body, headers: headers}, out)
}

// Read reads a resource, and its ETag. With that as the If-Match of a PUT, the error is an ErrChanged if someone has
// changed the resource since.
func (c *Client) Read(ctx context.Context, path string, out any) (raw json.RawMessage, tag string, err error) {
	var header http.Header
	raw, err = c.do(ctx, request{method: http.MethodGet, path: path, header: &header}, out)
	return raw, header.Get("ETag"), err
}

// json sends in as JSON; nil: no body.
func (c *Client) json(ctx context.Context, r request, in, out any) (json.RawMessage, error) {
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("write request: %w", err)
		}
		r.body = body
		if r.contentType == "" {
			r.contentType = "application/json"
		}
	}
	return c.do(ctx, r, out)
}

// prepare returns the request of net/http, except for its Accept header.
func (c *Client) prepare(ctx context.Context, r request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("User-Agent", "jobweaver-go/"+Version)
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	for i := 0; i+1 < len(r.headers); i += 2 {
		req.Header.Set(r.headers[i], r.headers[i+1])
	}
	return req, nil
}

func (c *Client) once(ctx context.Context, r request, out any) (json.RawMessage, error) {
	req, err := c.prepare(ctx, r)
	if err != nil {
		return nil, err
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json, application/problem+json, */*;q=0.1")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return nil, &url.Error{Op: "read answer of", URL: r.path, Err: err}
	}
	if res.StatusCode < http.StatusInternalServerError {
		c.answered.Store(true)
	}
	c.pace.note(res.Header, time.Now())
	if r.header != nil {
		*r.header = res.Header
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return raw, newError(res, raw)
	}
	if out == nil || len(raw) == 0 {
		return raw, nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return raw, fmt.Errorf("decode answer of %s: %w", r.path, err)
	}
	return raw, nil
}
