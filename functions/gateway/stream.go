package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

const (
	streamPath  = "/api/stream"
	streamType  = "text/event-stream"
	lastEventID = "Last-Event-ID"

	beatEvery     = 15 * time.Second // of a stream that has nothing to say
	checkEvery    = 5 * time.Second  // how old what is known of its key may be when a stream says something
	takePatience  = 20 * time.Second // how long a client may take to read what is sent at once
	retryAfter    = 2 * time.Second  // when a client that has lost its stream comes back
	withheldPause = time.Second      // before a key that could not be checked is checked again
)

// stream is one client's.
type stream struct {
	owner   apidb.Owner // the stream shows jobs of this owner
	counts  apidb.Owner // whose statistics
	jobID   uuid.UUID   // uuid.Nil: it is of a list
	filter  jobstore.Filter
	came    string // the id that it comes back with; empty: it is new
	place   uint64
	counted uint64 // the last statistics that it was sent
	missed  string // why it has to read again what it shows; empty: it need not
}

// wants tells whether an event is for the stream.
func (s *stream) wants(e *streamEvent) bool {
	switch {
	case s.jobID != uuid.Nil:
		return e.jobID == s.jobID || e.jobID == uuid.Nil && !e.lists
	case e.job != nil:
		return s.filter.Fits(s.owner, e.job)
	}
	return e.jobID == uuid.Nil
}

// stream is GET /api/stream.
func (f *Function) stream(c *gin.Context) error {
	s, err := streamOf(c)
	if err != nil {
		return err
	}
	if c.Request.Method == http.MethodHead {
		return f.headOfStream(c, s)
	}
	release, err := f.limits.HoldStream(c)
	if err != nil {
		return err
	}
	defer release()
	first, leave, err := f.joinStream(c, s)
	if err != nil {
		return err
	}
	defer leave()
	if err := f.enterReading(c); err != nil {
		return err
	}
	startStream(c)
	f.send(c, s, first)
	return nil
}

func startStream(c *gin.Context) {
	c.Header("Content-Type", streamType)
	c.Header("X-Accel-Buffering", "no") // nginx would keep events back
	c.Status(http.StatusOK)
	c.Writer.WriteHeaderNow()
}

// headOfStream answers HEAD as GET would begin, and ends.
func (f *Function) headOfStream(c *gin.Context, s *stream) error {
	if s.jobID != uuid.Nil {
		ctx, cancel := edge.WithPatience(c)
		defer cancel()
		if _, err := f.streamed(ctx, s); err != nil {
			return err
		}
	}
	startStream(c)
	return nil
}

func streamOf(c *gin.Context) (*stream, error) {
	q := edge.Query{Values: c.Request.URL.Query()}
	s := &stream{owner: edge.OwnerOf(c), counts: edge.WidestOwner(c), came: c.GetHeader(lastEventID)}
	known := append([]string{"jobId", "status"}, listFilters...)
	if q.Values.Has("jobId") {
		s.jobID, known = q.JobID("jobId"), []string{"jobId"}
		for _, name := range append([]string{"status"}, listFilters...) {
			if q.Values.Has(name) {
				q.Bad(name, "has no place beside jobId, which stands for one job")
				known = append(known, name)
			}
		}
	} else {
		s.filter = listFilter(&q)
		s.filter.Status = q.Statuses("status")
	}
	return s, q.Close(known...)
}

// joinStream gives a stream its place, and what it is sent first.
func (f *Function) joinStream(c *gin.Context, s *stream) (first []byte, leave func(), err error) {
	first = fmt.Appendf(nil, "retry: %d\n\n", retryAfter.Milliseconds())
	if s.jobID == uuid.Nil {
		leave = f.hub.join(s, logstore.Place{})
		return first, leave, nil
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	if _, err := f.streamed(ctx, s); err != nil { // nobody has the hub follow what is not theirs
		return nil, nil, err
	}
	end, err := f.store.logs.End(ctx, s.jobID)
	if err != nil {
		return nil, nil, err
	}
	leave = f.hub.join(s, end)
	if s.came != "" && s.missed == "" {
		return first, leave, nil
	}
	// After the place was taken: what changes from now on stands behind it.
	job, err := f.streamed(ctx, s)
	if err != nil {
		leave()
		return nil, nil, err
	}
	data, err := f.showStreamed(ctx, job)
	if err != nil {
		leave()
		return nil, nil, err
	}
	return append(first, frame(eventJob, "", data)...), leave, nil
}

// streamed is the job that a stream is of, if its owner has it.
func (f *Function) streamed(ctx context.Context, s *stream) (*jobstore.Changed, error) {
	jobs, _, err := f.store.jobs.ChangedJobs(ctx, []uuid.UUID{s.jobID})
	if err == nil && (len(jobs) == 0 || !s.filter.Fits(s.owner, &jobs[0])) {
		err = apidb.ErrNoJob
	}
	if err != nil {
		return nil, edge.OfJob(s.jobID, err)
	}
	return &jobs[0], nil
}

// showStreamed is a job as a list shows it. What only that needs is forgotten.
func (f *Function) showStreamed(ctx context.Context, job *jobstore.Changed) ([]byte, error) {
	f.openJob(ctx, &job.Job)
	data, err := json.Marshal(jobview.New(job.Job))
	if err != nil {
		return nil, fmt.Errorf("write job: %w", err)
	}
	job.Snapshot.Output = nil
	return data, nil
}

// streamLog is new lines of a job's log.
type streamLog struct {
	JobID  uuid.UUID `json:"jobId"`
	Logs   []logLine `json:"logs"`
	Sealed []string  `json:"sealed,omitempty"` // that cannot be shown
}

func (f *Function) showLines(ctx context.Context, id uuid.UUID, lines []logstore.Line) ([]byte, error) {
	return json.Marshal(streamLog{JobID: id, Sealed: f.openLines(ctx, id, lines), Logs: newLogs(lines)})
}

// showStats are an owner's statistics, and what of them tells whether they have changed: not when they were read.
func (f *Function) showStats(ctx context.Context, owner apidb.Owner) (shown, compared []byte, err error) {
	stats, err := f.store.stats.Get(ctx, owner, "", "")
	if err != nil {
		return nil, nil, err
	}
	body := newStatsBody(&stats)
	if shown, err = json.Marshal(body); err != nil {
		return nil, nil, fmt.Errorf("write statistics: %w", err)
	}
	body.At, body.AsOf = time.Time{}, nil
	if body.OldestWaiting != nil {
		body.OldestWaiting.AgeMs = 0
	}
	compared, err = json.Marshal(body)
	return shown, compared, err
}

type streamProgress struct {
	JobID   uuid.UUID `json:"jobId"`
	Attempt int       `json:"attempt"`
	jobview.Progress
}

// progressData is how far a job's attempt has come; nil: nobody knows.
func progressData(job *jobstore.Changed) []byte {
	progress := jobview.NewProgress(job.Progress)
	if progress == nil {
		return nil
	}
	data, err := json.Marshal(streamProgress{job.JobID, job.Attempt, *progress})
	if err != nil {
		return nil // a number and two texts are written
	}
	return data
}

type streamReload struct {
	Reason string `json:"reason"`
}

func reloadData(reason string) []byte {
	data, err := json.Marshal(streamReload{reason})
	if err != nil {
		return []byte("{}") // a text is written
	}
	return data
}

// send sends until the client goes, the key is none any more, or the process is about to end.
func (f *Function) send(c *gin.Context, s *stream, first []byte) {
	out := http.NewResponseController(c.Writer)
	_ = out.SetReadDeadline(time.Time{}) // of the request; nothing more is read of it
	if !deliver(c, out, append(first, f.hub.beat(s)...)) {
		return
	}
	beat, checked := time.NewTicker(beatEvery), time.Now()
	defer beat.Stop()
	for {
		if time.Since(checked) > checkEvery {
			switch err := f.still(c, access.Read); {
			case err == nil:
				checked = time.Now()
			case isRefusal(err):
				return
			}
		}
		var more <-chan struct{}
		var again <-chan time.Time
		if time.Since(checked) > 2*checkEvery { // the key cannot be checked: nothing is said until it can
			again = time.After(withheldPause)
		} else {
			var frames [][]byte
			if frames, more = f.hub.next(s); !deliver(c, out, frames...) {
				return
			}
		}
		select {
		case <-c.Request.Context().Done():
			return
		case <-f.hub.closing:
			return
		case <-more:
		case <-again:
		case <-beat.C:
			if !deliver(c, out, f.hub.beat(s)) {
				return
			}
		}
	}
}

// isRefusal tells whether a key is known to allow a request no more; else that could not be found out.
func isRefusal(err error) bool {
	var known *apierror.Error
	return errors.As(err, &known) && (known.Code == apierror.Unauthorized || known.Code == apierror.Forbidden)
}

// deliver has a client take what is sent. It is false for one that does not, for too long, or that is gone.
func deliver(c *gin.Context, out *http.ResponseController, frames ...[]byte) bool {
	if len(frames) == 0 {
		return true
	}
	_ = out.SetWriteDeadline(time.Now().Add(takePatience)) // a recorder of a test has none
	for _, frame := range frames {
		if _, err := c.Writer.Write(frame); err != nil {
			return false
		}
	}
	return out.Flush() == nil
}
