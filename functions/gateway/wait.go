package gateway

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// maxWait is the longest time that an answer is held.
const maxWait = time.Minute

// waits is the contract's pattern of ?wait=: up to a minute, in seconds where it names no unit.
var waits = regexp.MustCompile(`^(([1-5]?[0-9]([.][0-9]{1,9})?|60)s?|([1-5]?[0-9]{1,4}|60000)ms|1m(0s)?)$`)

// waitOf is how long an answer may be held.
func waitOf(q *edge.Query, name string) time.Duration {
	value := q.One(name)
	if value == "" {
		return 0
	}
	if !waits.MatchString(value) {
		q.Bad(name, "must be a duration up to 60s, as 30s, 1.5s or 500ms")
		return 0
	}
	if strings.Trim(value, "0123456789.") == "" {
		value += "s"
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		q.Bad(name, "must be a duration up to 60s: %v", err)
	}
	return d
}

// waiting is how long the answer to a request may be held: by ?wait=, or else by Prefer: wait=seconds (RFC 7240). A
// preference that is no number of seconds is ignored, and one beyond maxWait is shortened, as the RFC has it.
type waiting struct {
	time.Duration
	preferred bool
}

func waitingOf(c *gin.Context, q *edge.Query) waiting {
	if q.Values.Has("wait") {
		return waiting{Duration: waitOf(q, "wait")}
	}
	value, _ := preference(c.Request.Header, "wait")
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return waiting{}
	}
	return waiting{Duration: min(time.Duration(seconds)*time.Second, maxWait), preferred: true}
}

// applied tells a client that its preference counted.
func (w waiting) applied(c *gin.Context) {
	if w.preferred {
		c.Header("Preference-Applied", "wait="+strconv.Itoa(int(w.Seconds())))
	}
}

// preference finds a preference in the header Prefer, and its value if it has one.
func preference(header http.Header, name string) (value string, found bool) {
	if len(header["Prefer"]) == 0 {
		return "", false
	}
	for wish := range strings.SplitSeq(strings.Join(header.Values("Prefer"), ","), ",") {
		wish, _, _ = strings.Cut(wish, ";")
		token, value, _ := strings.Cut(wish, "=")
		if strings.EqualFold(strings.TrimSpace(token), name) {
			return strings.Trim(strings.TrimSpace(value), `"`), true
		}
	}
	return "", false
}

// submitWaiting is waitingOf for a request that submits a job. The whole job is shown to keys that may read it.
func submitWaiting(c *gin.Context) (waiting, error) {
	if c.Request.URL.RawQuery == "" && len(c.Request.Header["Prefer"]) == 0 {
		return waiting{}, nil
	}
	q := edge.Query{Values: c.Request.URL.Query()}
	wait := waitingOf(c, &q)
	if err := q.Close("wait"); err != nil {
		return waiting{}, err
	}
	if wait.Duration == 0 || access.Of(c.Request.Context()).May(access.Read) {
		return wait, nil
	}
	if wait.preferred {
		return waiting{}, nil
	}
	return waiting{}, apierror.New(apierror.Forbidden,
		"wait shows the job: it needs the role %s, which the API key or token does not have", access.Read)
}

// awaitEnd holds an answer until a job has ended, or the wait is over, and checks that the key may still read. The
// caller releases the place among those that are held.
func (f *Function) awaitEnd(c *gin.Context, id uuid.UUID, wait waiting) (release func(), err error) {
	if release, err = f.limits.HoldAnswer(c); err != nil {
		return nil, err
	}
	wait.applied(c)
	ctx, cancel := context.WithTimeout(c.Request.Context(), wait.Duration)
	defer cancel()
	defer f.hub.enter()()
	f.endings.wait(ctx, id)
	if err := f.still(c, access.Read); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// showEnded holds the answer to a job that has been accepted, and shows the job once it has ended. It returns false
// when the job has not, or cannot be shown: it stays accepted, and the answer says so.
func (f *Function) showEnded(c *gin.Context, id uuid.UUID, wait waiting) bool {
	release, err := f.awaitEnd(c, id, wait)
	if err != nil {
		return false
	}
	defer release()
	c.Request = c.Request.WithContext(shared(c.Request.Context(), c))
	job, err := f.job(c, id)
	if err != nil || !job.Status.Terminal() {
		return false
	}
	if p := access.Of(c.Request.Context()); f.cfg.AuditReads && !p.Everyone {
		entry := newEntry(c, p, "job.read")
		entry.JobIDs = []uuid.UUID{id}
		c.Set(readingKey, entry)
	}
	return f.showJob(c, job) == nil
}
