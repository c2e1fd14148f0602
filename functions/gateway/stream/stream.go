// Package stream serves GET /api/stream: Server-Sent Events about jobs.
package stream

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/changes"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/jobs"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/client"
)

const (
	streamType = "text/event-stream"

	keepEvery     = 15 * time.Second // on a stream without events
	checkEvery    = 5 * time.Second  // how old the last check of the key may be when an event is sent
	takePatience  = 20 * time.Second // how long a write to a client may block
	retryAfter    = 2 * time.Second  // after which a client that lost its stream reconnects
	withheldPause = time.Second      // before a key that could not be checked is checked again
)

// API has the endpoint of the event stream, and makes the data of its events.
type API struct {
	Store  *jobstore.Store
	Logs   *logstore.Store
	Stats  *statstore.Store
	Jobs   *jobs.API
	Hub    *changes.Hub
	Limits *edge.Limits
	Auth   *edge.Authenticator
	Audit  *audit.Log
}

// Get is GET /api/stream.
func (a *API) Get(c *gin.Context) error {
	s, err := a.streamOf(c)
	if err != nil {
		return err
	}
	if c.Request.Method == http.MethodHead {
		return a.headOfStream(c, s)
	}
	release, err := a.Limits.HoldStream(c)
	if err != nil {
		return err
	}
	defer release()
	first, leave, err := a.joinStream(c, s)
	if err != nil {
		return err
	}
	defer leave()
	if err := a.Audit.EnterReading(c); err != nil {
		return err
	}
	startStream(c)
	a.send(c, s, first)
	return nil
}

func startStream(c *gin.Context) {
	c.Header("Content-Type", streamType)
	c.Header("X-Accel-Buffering", "no") // nginx would buffer events
	c.Status(http.StatusOK)
	c.Writer.WriteHeaderNow()
}

// headOfStream answers HEAD with the headers of a GET.
func (a *API) headOfStream(c *gin.Context, s *changes.Subscription) error {
	if s.JobID != uuid.Nil {
		ctx, cancel := edge.WithPatience(c)
		defer cancel()
		if _, err := a.streamed(ctx, s); err != nil {
			return err
		}
	}
	startStream(c)
	return nil
}

func (a *API) streamOf(c *gin.Context) (*changes.Subscription, error) {
	q := edge.NewQuery(c)
	s := &changes.Subscription{
		Owner: edge.OwnerOf(c), LastEventID: c.GetHeader("Last-Event-ID"),
	}
	known := append([]string{"jobId", "status"}, jobs.Filters...)
	if q.Values.Has("jobId") {
		s.JobID, known = q.JobID("jobId"), []string{"jobId"}
		for _, name := range append([]string{"status"}, jobs.Filters...) {
			if q.Values.Has(name) {
				q.Bad(name, "cannot be combined with jobId, which selects one job")
				known = append(known, name)
			}
		}
	} else {
		s.Filter = a.Jobs.ReadFilter(&q)
		s.Filter.Status = q.Statuses("status")
	}
	return s, q.Close(known...)
}

// joinStream gives a stream its place in the ring, and returns the first frames.
func (a *API) joinStream(c *gin.Context, s *changes.Subscription) (first []byte, leave func(), err error) {
	first = fmt.Appendf(nil, "retry: %d\n\n", retryAfter.Milliseconds())
	if s.JobID == uuid.Nil {
		leave = a.Hub.Join(s, logstore.Place{})
		return first, leave, nil
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	if _, err := a.streamed(ctx, s); err != nil { // before Join: the hub must not follow a job of another owner
		return nil, nil, err
	}
	end, err := a.Logs.End(ctx, s.JobID)
	if err != nil {
		return nil, nil, err
	}
	leave = a.Hub.Join(s, end)
	if s.LastEventID != "" && !s.Missed() {
		return first, leave, nil
	}
	// After Join: every later change is an event behind the stream's place.
	job, err := a.streamed(ctx, s)
	if err != nil {
		leave()
		return nil, nil, err
	}
	data, err := a.ShowJob(ctx, job)
	if err != nil {
		leave()
		return nil, nil, err
	}
	return append(first, changes.Frame(client.EventJob, "", data)...), leave, nil
}

// streamed returns the job of a stream. It returns ErrNoJob if the stream's owner has no such job.
func (a *API) streamed(ctx context.Context, s *changes.Subscription) (*jobstore.Changed, error) {
	jobs, _, err := a.Store.ChangedJobs(ctx, []uuid.UUID{s.JobID})
	if err == nil && (len(jobs) == 0 || !s.Filter.Fits(s.Owner, &jobs[0])) {
		err = apidb.ErrNoJob
	}
	if err != nil {
		return nil, edge.OfJob(s.JobID, err)
	}
	return &jobs[0], nil
}

// send sends events until the client disconnects, the key is revoked, or the process is about to end.
func (a *API) send(c *gin.Context, s *changes.Subscription, first []byte) {
	out := http.NewResponseController(c.Writer)
	_ = out.SetReadDeadline(time.Time{}) // of the request, whose body is not read any more
	if !deliver(c, out, append(first, a.Hub.Heartbeat(s)...)) {
		return
	}
	keep, checked := time.NewTicker(keepEvery), time.Now()
	defer keep.Stop()
	for {
		if time.Since(checked) > checkEvery {
			switch err := a.Auth.Recheck(c, access.Read); {
			case err == nil:
				checked = time.Now()
			case edge.IsRefusal(err):
				return
			}
		}
		var more <-chan struct{}
		var again <-chan time.Time
		if time.Since(checked) > 2*checkEvery { // the key cannot be checked: nothing is sent until it can
			again = time.After(withheldPause)
		} else {
			var frames [][]byte
			if frames, more = a.Hub.Next(s); !deliver(c, out, frames...) {
				return
			}
		}
		select {
		case <-c.Request.Context().Done():
			return
		case <-a.Hub.Closing():
			return
		case <-more:
		case <-again:
		case <-keep.C:
			if !deliver(c, out, a.Hub.Heartbeat(s)) {
				return
			}
		}
	}
}

// deliver writes frames to a client. It returns false if the client does not read them in time, or is gone.
func deliver(c *gin.Context, out *http.ResponseController, frames ...[]byte) bool {
	if len(frames) == 0 {
		return true
	}
	_ = out.SetWriteDeadline(time.Now().Add(takePatience)) // the recorder of a test has none
	for _, frame := range frames {
		if _, err := c.Writer.Write(frame); err != nil { //nolint:forbidigo // all streams share the frames of the hub
			return false
		}
	}
	return out.Flush() == nil
}
