package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"time"
)

// silence is how long a stream may send nothing: a gateway sends a comment every 15 s.
const silence = 45 * time.Second

// The names of events.
const (
	EventJob      = "job"      // Event.Job is new or has changed
	EventProgress = "progress" // Event.Progress
	EventLog      = "log"      // Event.Log; only of a stream of one job
	EventStats    = "stats"    // Event.Data: the answer of GET /api/stats
	EventReload   = "reload"   // the stream missed events: read again what you show
)

// Event is an event of a stream. An event with another name has only Data.
type Event struct {
	Name string
	ID   string // the value for Last-Event-ID

	Job      *Job
	Progress *JobProgress
	Log      *JobLog
	Data     json.RawMessage
}

// JobProgress is the progress that an attempt of a job has reported.
type JobProgress struct {
	JobID   string `json:"jobId"`
	Attempt int    `json:"attempt"`
	Progress
}

// JobLog has new lines of a job's log.
type JobLog struct {
	JobID string    `json:"jobId"`
	Logs  []LogLine `json:"logs"`
}

// Stream follows the jobs that match a filter as they change, until ctx ends or the loop is left. A stream that breaks
// is opened again after its last event: the missed events follow, or a reload event. It ends with an error when the
// gateway refuses it, or cannot be reached for two minutes.
func (c *Client) Stream(ctx context.Context, filter Filter) iter.Seq2[*Event, error] {
	return c.streamFrom(ctx, "/api/stream"+query(filter.values()))
}

// StreamJob follows one job with its progress and log. The first event is the job as it is. It does not end with the
// job.
func (c *Client) StreamJob(ctx context.Context, id string) iter.Seq2[*Event, error] {
	return c.streamFrom(ctx, "/api/stream?jobId="+url.QueryEscape(id))
}

func (c *Client) streamFrom(ctx context.Context, path string) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		last, alive, failed := "", time.Now(), 0
		for {
			ended, err := c.connect(ctx, path, last, func(e event) bool {
				alive = time.Now()
				if e.id != "" {
					last = e.id
				}
				if e.data == nil {
					return true
				}
				failed = 0
				return yield(e.typed())
			})
			var refused *Error
			switch {
			case ended:
				return
			case ctx.Err() != nil:
				yield(nil, ctx.Err())
				return
			case errors.As(err, &refused) && !Unreached(err) && refused.Status != http.StatusTooManyRequests,
				err != nil && time.Since(alive) > restartPatience:
				yield(nil, err)
				return
			}
			if err := pauseFor(ctx, max(backoff(failed), asked(err))); err != nil {
				yield(nil, err)
				return
			}
			failed++
		}
	}
}

// event is an event in the format text/event-stream.
type event struct {
	name string
	id   string
	data []byte // nil: it only has an id, the place up to which the stream had no event
}

func (e event) typed() (*Event, error) {
	public := &Event{Name: e.name, ID: e.id, Data: e.data}
	var into any
	switch e.name {
	case EventJob:
		public.Job = &Job{Raw: e.data}
		into = public.Job
	case EventProgress:
		public.Progress = &JobProgress{}
		into = public.Progress
	case EventLog:
		public.Log = &JobLog{}
		into = public.Log
	default:
		return public, nil
	}
	if err := json.Unmarshal(e.data, into); err != nil {
		return nil, fmt.Errorf("decode event %s: %w", e.name, err)
	}
	return public, nil
}

// connect reads the events of one connection until it ends. err is the reason if there was no connection. ended is true
// if seen has returned that it wants no more events.
func (c *Client) connect(ctx context.Context, path, last string, seen func(event) bool) (ended bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := time.AfterFunc(silence, cancel)
	defer silent.Stop()
	body, err := c.open(ctx, path, last)
	if err != nil {
		return false, err
	}
	defer body.Close()
	return read(body, func() { silent.Reset(silence) }, seen), nil
}

func (c *Client) open(ctx context.Context, path, last string) (io.ReadCloser, error) {
	req, err := c.prepare(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream, application/problem+json")
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	endless := *c.http
	endless.Timeout = 0
	res, err := endless.Do(req)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode == http.StatusOK && kind == "text/event-stream" {
		c.answered.Store(true)
		return res.Body, nil
	}
	defer res.Body.Close()
	raw, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // the status shows a refusal even if the body is cut off
	refused := newError(res, raw)
	refused.Message = "no stream: " + refused.Message
	return nil, refused
}

// stream opens a stream of events. The channel is closed when the stream ends, at the latest when ctx ends. The caller
// must read it until then.
func (c *Client) stream(ctx context.Context, path string) (<-chan event, error) {
	opened, events := make(chan error, 1), make(chan event)
	go func() {
		defer close(events)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		silent := time.AfterFunc(silence, cancel)
		defer silent.Stop()
		body, err := c.open(ctx, path, "")
		opened <- err
		if err != nil {
			return
		}
		defer body.Close()
		read(body, func() { silent.Reset(silence) }, func(e event) bool {
			select {
			case events <- e:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	return events, <-opened
}

// read reads events until there are no more, and calls alive for each line. It returns true if seen wanted no more
// events.
func read(from io.Reader, alive func(), seen func(event) bool) (ended bool) {
	lines := bufio.NewReader(from)
	var e event
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return false // an incomplete event does not count
		}
		alive()
		line = bytes.TrimRight(line, "\r\n")
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0:
			if (e.data != nil || e.id != "") && !seen(e) {
				return true
			}
			e = event{}
		case string(field) == "event":
			e.name = string(value)
		case string(field) == "id":
			e.id = string(value)
		case string(field) == "data":
			if e.data != nil {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
		}
	}
}
