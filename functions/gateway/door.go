package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/throttle"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/fairshare"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// DoorConfig is how much may come in, and from where it is said to come.
type DoorConfig struct {
	RateLimit     float64 `envconfig:"RATE_LIMIT" desc:"requests a second of each owner, and of each address that needs no authentication; 0: unlimited"`
	RateLimitJobs float64 `envconfig:"RATE_LIMIT_JOBS" desc:"jobs a second that each owner may submit; a batch may exceed what is available and is then paid back; 0: unlimited"`
	WaitLimit     int     `envconfig:"WAIT_LIMIT" default:"1000" desc:"requests of each owner that may wait at once, with ?wait= or for changes of controls"`

	StreamLimit      int `envconfig:"STREAM_LIMIT" default:"100" desc:"event streams that each owner may have open at once; more get 429"`
	StreamLimitTotal int `envconfig:"STREAM_LIMIT_TOTAL" default:"1000" desc:"event streams that all owners together may have open at one gateway"`

	AuthFailureLimit int `envconfig:"AUTH_FAILURE_LIMIT" default:"60" desc:"wrong keys and callback secrets a minute of each address; more get 429"`

	ScheduleLimit  int `envconfig:"SCHEDULE_LIMIT" default:"1000" desc:"schedules that each owner may have; more are refused"`
	OperationLimit int `envconfig:"OPERATION_LIMIT" default:"20" desc:"unfinished operations that each owner may have; more get 429"`

	TrustedProxies []string `envconfig:"TRUSTED_PROXIES" desc:"addresses or networks, such as 10.0.0.0/8, whose X-Forwarded-For is trusted"`
}

// What nobody needs more of.
const (
	defaultWaitLimit        = 1000
	defaultStreamLimit      = 100
	defaultStreamLimitTotal = 1000
	defaultAuthFailureLimit = 60

	progressAtOnce, progressPerSecond = 10, 2 // of an attempt: each writes a row

	maxRate   = 1e9
	maxThings = 1_000_000
)

// door counts who comes in.
type door struct {
	requests, jobs *throttle.Table // nil: any number
	failures       *throttle.Table
	progress       *throttle.Table
	waits          *throttle.Held
	streams        *throttle.Held
	allStreams     *throttle.Held // of one caller, which is all of them

	load      *throttle.Room
	strangers *fairshare.Shares // places for long bodies of who is not known yet
	guessers  *fairshare.Shares // the same for addresses from which too many were nobody's

	policies []string // RateLimit-Policy; nil: there is none
}

func newDoor(cfg DoorConfig) (*door, error) {
	for _, rate := range []struct {
		name  string
		value float64
	}{{"RATE_LIMIT", cfg.RateLimit}, {"RATE_LIMIT_JOBS", cfg.RateLimitJobs}} {
		if !(rate.value >= 0 && rate.value <= maxRate) { // NaN is neither
			return nil, fmt.Errorf("%s: %v is no number of them a second", rate.name, rate.value)
		}
	}
	if cfg.WaitLimit < 0 {
		return nil, fmt.Errorf("WAIT_LIMIT: %d is negative", cfg.WaitLimit)
	}
	if cfg.StreamLimit < 0 {
		return nil, fmt.Errorf("STREAM_LIMIT: %d is negative", cfg.StreamLimit)
	}
	if cfg.StreamLimitTotal < 0 {
		return nil, fmt.Errorf("STREAM_LIMIT_TOTAL: %d is negative", cfg.StreamLimitTotal)
	}
	if cfg.AuthFailureLimit < 0 {
		return nil, fmt.Errorf("AUTH_FAILURE_LIMIT: %d is negative", cfg.AuthFailureLimit)
	}
	if cfg.ScheduleLimit < 0 || cfg.ScheduleLimit > maxThings {
		return nil, fmt.Errorf("SCHEDULE_LIMIT: %d is not from 0 to %d", cfg.ScheduleLimit, maxThings)
	}
	if cfg.OperationLimit < 0 || cfg.OperationLimit > maxThings {
		return nil, fmt.Errorf("OPERATION_LIMIT: %d is not from 0 to %d", cfg.OperationLimit, maxThings)
	}
	cfg.WaitLimit = cmp.Or(cfg.WaitLimit, defaultWaitLimit)
	cfg.StreamLimit = cmp.Or(cfg.StreamLimit, defaultStreamLimit)
	cfg.StreamLimitTotal = cmp.Or(cfg.StreamLimitTotal, defaultStreamLimitTotal)
	cfg.AuthFailureLimit = cmp.Or(cfg.AuthFailureLimit, defaultAuthFailureLimit)
	gin.SetMode(gin.ReleaseMode) // before the first gin.New, which would advise so on every start
	if err := gin.New().SetTrustedProxies(cfg.TrustedProxies); err != nil {
		return nil, fmt.Errorf("TRUSTED_PROXIES: %w", err)
	}
	d := &door{
		requests: throttle.New(cfg.RateLimit, int(math.Ceil(cfg.RateLimit))),
		jobs:     throttle.New(cfg.RateLimitJobs, int(math.Ceil(cfg.RateLimitJobs))),
		failures: throttle.New(float64(cfg.AuthFailureLimit)/60, cfg.AuthFailureLimit),
		progress: throttle.New(progressPerSecond, progressAtOnce),
		waits:    throttle.NewHeld(cfg.WaitLimit),

		streams:    throttle.NewHeld(cfg.StreamLimit),
		allStreams: throttle.NewHeld(cfg.StreamLimitTotal),

		load:      throttle.NewRoom(maxLoad),
		strangers: fairshare.New(strangers, strangersEach),
		guessers:  fairshare.New(strangersEach, 1),
	}
	for _, policy := range []struct {
		name  string
		table *throttle.Table
		more  string
	}{{"requests", d.requests, ""}, {"jobs", d.jobs, `;jobweaver-unit="jobs"`}} {
		if policy.table != nil {
			quota, seconds := policy.table.Policy()
			d.policies = append(d.policies, fmt.Sprintf(`"%s";q=%d;w=%d%s`, policy.name, quota, seconds, policy.more))
		}
	}
	return d, nil
}

// slowDown is the answer to a request beyond one of the limits, which it names.
type slowDown struct {
	limit string
	after time.Duration
}

func (s slowDown) Error() string { return s.limit + "; retry in " + s.seconds() + " s" }

// seconds is when to try again.
func (s slowDown) seconds() string { return strconv.Itoa(wholeSeconds(s.after)) }

func wholeSeconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

// guard refuses what no program of ours sends, but a browser in somebody else's hands.
func (f *Function) guard(c *gin.Context) {
	switch {
	case f.cfg.Auth == AuthOff && !isLoopback(c.Request.Host):
		// A name that leads here, and is not ours, is how a page from elsewhere would pass for one of this server.
		f.fail(c, apierror.New(apierror.Forbidden, "with AUTH=off this is %q to nobody; ask for localhost", c.Request.Host))
	case fromElsewhere.Check(c.Request) != nil:
		f.fail(c, apierror.New(apierror.Forbidden, "this request is from a page of another site"))
	}
}

var fromElsewhere http.CrossOriginProtection

// isLoopback: the Host is this machine's own to whoever asks.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	at, err := netip.ParseAddr(host)
	return err == nil && at.Zone() == "" && at.Unmap().IsLoopback()
}

// remoteAddr is the address that a request is from, as far as those on its way are believed.
func remoteAddr(c *gin.Context) string { return c.ClientIP() }

// callerAt is an address as it is counted: a network of IPv6 is one house.
func callerAt(address string) string {
	at, err := netip.ParseAddr(address)
	if err != nil {
		return "from " + address
	}
	if at = at.Unmap().WithZone(""); at.Is6() {
		if network, err := at.Prefix(64); err == nil {
			return "from " + network.String()
		}
	}
	return "from " + at.String()
}

// caller is as whom a request is counted: an owner, or the address of who need not say who they are.
func caller(c *gin.Context) string {
	p := access.Of(c.Request.Context())
	if p.Everyone || p.Actor == "" {
		return callerAt(remoteAddr(c))
	}
	return ownerCaller(p)
}

func ownerCaller(p access.Principal) string { return "owner " + p.Owner }

// enter counts a request. The headers are those of draft-ietf-httpapi-ratelimit-headers-11.
func (d *door) enter(c *gin.Context) error {
	if d.policies == nil {
		return nil
	}
	c.Writer.Header()["Ratelimit-Policy"] = d.policies
	return take(c, d.requests, "requests", 1)
}

// submit counts jobs that a request brings.
func (d *door) submit(c *gin.Context, jobs int) error { return take(c, d.jobs, "jobs", jobs) }

func take(c *gin.Context, table *throttle.Table, policy string, n int) error {
	if table == nil {
		return nil
	}
	v := table.Take(caller(c), n, time.Now())
	c.Writer.Header().Add("RateLimit", fmt.Sprintf(`"%s";r=%d;t=%d`, policy, v.Left, wholeSeconds(v.After)))
	if !v.OK {
		quota, seconds := table.Policy()
		return slowDown{fmt.Sprintf("rate limit exceeded: %d %s in %d s", quota, policy, seconds), v.After}
	}
	return nil
}

// hold counts an answer that is held; else release is to be called.
func (d *door) hold(c *gin.Context) (release func(), err error) {
	release, ok := d.waits.Hold(caller(c))
	if !ok {
		return nil, slowDown{"too many answers are held at once", time.Second}
	}
	return release, nil
}

// streamAgain is when who has found no room for a stream is to try again.
const streamAgain = 5 * time.Second

// holdStream counts a stream; else release is to be called.
func (d *door) holdStream(c *gin.Context) (release func(), err error) {
	own, ok := d.streams.Hold(caller(c))
	if !ok {
		return nil, slowDown{"too many event streams of this owner are open", streamAgain}
	}
	all, ok := d.allStreams.Hold("")
	if !ok {
		own()
		return nil, slowDown{"too many event streams are open", streamAgain}
	}
	return func() { own(); all() }, nil
}

// progresses counts what an attempt says of its progress.
func (d *door) progresses(said jobspec.Callback) error {
	if said.Status != jobspec.CallbackProgress {
		return nil
	}
	if v := d.progress.Take(jobevent.AttemptToken(said.JobID, said.Attempt), 1, time.Now()); !v.OK {
		return slowDown{"rate limit exceeded: progress of one attempt", v.After}
	}
	return nil
}

// failed counts a wrong key, token or callback secret, and returns 429 in place of the 401 when an address sends too
// many. Requests that carry none are not counted: they guess nothing, and a client that forgot the header has to read
// that.
func (d *door) failed(c *gin.Context, err error) error {
	var known *apierror.Error
	if !errors.As(err, &known) || known.Code != apierror.Unauthorized || !claims(c.Request) {
		return err
	}
	return d.guessed(c, err)
}

// guessed counts a wrong secret, and returns err, or 429 when an address sends too many.
func (d *door) guessed(c *gin.Context, err error) error {
	if v := d.failures.Take(callerAt(remoteAddr(c)), 1, time.Now()); !v.OK {
		quota, _ := d.failures.Policy()
		message := fmt.Sprintf("rate limit exceeded: %d wrong keys or secrets a minute from one address", quota)
		return slowDown{message, v.After}
	}
	return err
}

// claims tells whether a request carries a key, a token, or the secret or signature of a callback.
func claims(r *http.Request) bool {
	for _, name := range []string{"Authorization", "X-Api-Key", callbackSecretHeader, callbackSignatureHeader} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}
