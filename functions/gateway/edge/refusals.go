package edge

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// refusalsEach is how long refusals of one kind are summed before they are logged.
	refusalsEach = time.Minute
	// refusalRows is the number of lines that an interval can have at most, whatever clients send.
	refusalRows = 100
	// loggedMessage is the number of bytes of an error's message in the log: some messages repeat part of the request.
	loggedMessage = 200
)

// Refusals sums the requests that are refused because of their sender (401, 403 and 429), by address, actor and error
// code, and logs each sum once a minute. So the log has every address that tries keys or secrets, and no client can
// fill the log by trying.
type Refusals struct {
	mu     sync.Mutex
	sums   map[refusal]*refused
	others int // refusals that found no free row
}

type refusal struct {
	address string
	actor   string // empty: the request is not authenticated
	code    apierror.Code
}

// refused describes the refusals of a row; method, path, key, message and traceID are those of the latest one.
type refused struct {
	tries                               int
	since                               time.Time
	method, path, key, message, traceID string
}

// NewRefusals makes an empty sum.
func NewRefusals() *Refusals { return &Refusals{sums: map[refusal]*refused{}} }

// Note adds a refused request; it ignores a request that failed for another reason.
func (r *Refusals) Note(c *gin.Context, body ErrorBody) {
	switch body.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
	default:
		return
	}
	row := refusal{
		address: strings.TrimPrefix(CallerAt(RemoteAddr(c)), "from "),
		actor:   access.Of(c.Request.Context()).Actor, code: body.ErrorCode,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := r.sums[row]
	if sum == nil {
		if len(r.sums) >= refusalRows {
			r.others++
			return
		}
		sum = &refused{since: time.Now()}
		r.sums[row] = sum
	}
	sum.tries++
	sum.method, sum.path, sum.traceID = c.Request.Method, c.FullPath(), body.TraceID.String()
	sum.key, sum.message = access.ClaimedKey(c.Request), body.Message[:min(len(body.Message), loggedMessage)]
}

// Run logs the sums once a minute, and the last ones when ctx ends.
func (r *Refusals) Run(ctx context.Context) {
	every := time.NewTicker(refusalsEach)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			r.log(ctx)
		case <-ctx.Done():
			r.log(ctx)
			return
		}
	}
}

func (r *Refusals) log(ctx context.Context) {
	r.mu.Lock()
	sums, others := r.sums, r.others
	r.sums, r.others = map[refusal]*refused{}, 0
	r.mu.Unlock()
	logger := telemetry.Logger(ctx)
	for row, sum := range sums {
		logger.WarnContext(ctx, "requests refused", "address", row.address, "actor", row.actor, "errorCode", row.code,
			"tries", sum.tries, "since", sum.since.UTC(), "method", sum.method, "path", sum.path, "key", sum.key,
			"message", sum.message, telemetry.FieldTraceID, sum.traceID)
	}
	if others > 0 {
		logger.WarnContext(ctx, "requests of further addresses refused", "tries", others)
	}
}
