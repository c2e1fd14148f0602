package edge

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/throttle"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/fairshare"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// LimitsConfig has the rates of requests and jobs, and the proxies whose X-Forwarded-For is trusted.
type LimitsConfig struct {
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

// Limits that no installation needs to raise.
const (
	defaultWaitLimit        = 1000
	defaultStreamLimit      = 100
	defaultStreamLimitTotal = 1000
	DefaultAuthFailureLimit = 60

	progressAtOnce, progressPerSecond = 10, 2 // for an attempt: each report writes a row

	maxRate   = 1e9
	maxThings = 1_000_000
)

// Limits counts requests, jobs, wrong secrets and held responses for each caller.
type Limits struct {
	requests, jobs *throttle.Table // nil: unlimited
	failures       *throttle.Table
	progress       *throttle.Table
	waits          *throttle.InUse
	streams        *throttle.InUse
	allStreams     *throttle.InUse // of all callers together

	load      *throttle.Room
	strangers *fairshare.Shares // places for long bodies of unauthenticated senders
	guessers  *fairshare.Shares // the same for addresses with too many failures

	policies []string // RateLimit-Policy; nil: there is none
}

// NewLimits makes the limits. An error begins with the name of the wrong setting.
func NewLimits(cfg LimitsConfig) (*Limits, error) {
	for _, rate := range []struct {
		name  string
		value float64
	}{{"RATE_LIMIT", cfg.RateLimit}, {"RATE_LIMIT_JOBS", cfg.RateLimitJobs}} {
		if !(rate.value >= 0 && rate.value <= maxRate) { // NaN fails both comparisons
			return nil, fmt.Errorf("%s: %v is not a rate per second", rate.name, rate.value)
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
	cfg.AuthFailureLimit = cmp.Or(cfg.AuthFailureLimit, DefaultAuthFailureLimit)
	gin.SetMode(gin.ReleaseMode) // before the first gin.New, which would log a hint at every start
	if err := gin.New().SetTrustedProxies(cfg.TrustedProxies); err != nil {
		return nil, fmt.Errorf("TRUSTED_PROXIES: %w", err)
	}
	d := &Limits{
		requests: throttle.New(cfg.RateLimit, int(math.Ceil(cfg.RateLimit))),
		jobs:     throttle.New(cfg.RateLimitJobs, int(math.Ceil(cfg.RateLimitJobs))),
		failures: throttle.New(float64(cfg.AuthFailureLimit)/60, cfg.AuthFailureLimit),
		progress: throttle.New(progressPerSecond, progressAtOnce),
		waits:    throttle.NewInUse(cfg.WaitLimit),

		streams:    throttle.NewInUse(cfg.StreamLimit),
		allStreams: throttle.NewInUse(cfg.StreamLimitTotal),

		load:      throttle.NewRoom(maxLoad),
		strangers: fairshare.New(Strangers, StrangersEach),
		guessers:  fairshare.New(StrangersEach, 1),
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

// SlowDownError refuses a request beyond a limit, which it names.
type SlowDownError struct {
	limit string
	after time.Duration
}

// SlowDown refuses a request beyond a limit. after is the time until the next one is allowed.
func SlowDown(limit string, after time.Duration) error { return SlowDownError{limit, after} }

// Unwrap returns the error for the client.
func (s SlowDownError) Unwrap() error { return apierror.New(apierror.RateLimited, "%s", s) }

func (s SlowDownError) Error() string { return s.limit + "; retry in " + s.Seconds() + " s" }

// Seconds returns the value of Retry-After.
func (s SlowDownError) Seconds() string { return strconv.Itoa(wholeSeconds(s.after)) }

func wholeSeconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

// RemoteAddr returns the client's address, taken from X-Forwarded-For only as far as proxies are trusted.
func RemoteAddr(c *gin.Context) string { return c.ClientIP() }

// CallerAt returns the name under which an address is counted: all addresses of an IPv6 network are one caller.
func CallerAt(address string) string {
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

// CallerOf returns the name under which a request is counted: its owner, or its address when authentication is off.
func CallerOf(c *gin.Context) string {
	p := access.Of(c.Request.Context())
	if p.Anonymous || p.Actor == "" {
		return CallerAt(RemoteAddr(c))
	}
	return OwnerCaller(p)
}

// OwnerCaller returns the name under which the requests of an owner are counted.
func OwnerCaller(p access.Principal) string { return "owner " + p.Owner }

// AllowRequest counts a request. The headers are those of draft-ietf-httpapi-ratelimit-headers-11.
func (d *Limits) AllowRequest(c *gin.Context) error {
	if d.policies == nil {
		return nil
	}
	c.Writer.Header()["Ratelimit-Policy"] = d.policies
	return take(c, d.requests, "requests", 1)
}

// AllowJobs counts the jobs that a request submits.
func (d *Limits) AllowJobs(c *gin.Context, jobs int) error { return take(c, d.jobs, "jobs", jobs) }

func take(c *gin.Context, table *throttle.Table, policy string, n int) error {
	if table == nil {
		return nil
	}
	v := table.Take(CallerOf(c), n, time.Now())
	c.Writer.Header().Add("RateLimit", fmt.Sprintf(`"%s";r=%d;t=%d`, policy, v.Left, wholeSeconds(v.After)))
	if !v.OK {
		quota, seconds := table.Policy()
		return SlowDownError{fmt.Sprintf("rate limit exceeded: %d %s in %d s", quota, policy, seconds), v.After}
	}
	return nil
}

// HoldAnswer counts a held response. The caller calls release after it has answered.
func (d *Limits) HoldAnswer(c *gin.Context) (release func(), err error) {
	release, ok := d.waits.Take(CallerOf(c))
	if !ok {
		return nil, SlowDownError{"too many requests of this owner are waiting", time.Second}
	}
	if err := LoadOf(c).Hold(); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// streamAgain is the Retry-After of a stream that is refused.
const streamAgain = 5 * time.Second

// HoldStream counts a stream. The caller calls release when the stream has ended.
func (d *Limits) HoldStream(c *gin.Context) (release func(), err error) {
	own, ok := d.streams.Take(CallerOf(c))
	if !ok {
		return nil, SlowDownError{"too many event streams of this owner are open", streamAgain}
	}
	all, ok := d.allStreams.Take("")
	if !ok {
		own()
		return nil, SlowDownError{"too many event streams are open", streamAgain}
	}
	if err := LoadOf(c).Hold(); err != nil {
		own()
		all()
		return nil, err
	}
	return func() { own(); all() }, nil
}

// AllowProgress counts the progress reports of an attempt.
func (d *Limits) AllowProgress(callback apibody.Callback) error {
	if callback.Status != apibody.CallbackProgress {
		return nil
	}
	if v := d.progress.Take(jobevent.AttemptToken(callback.JobID, callback.Attempt), 1, time.Now()); !v.OK {
		return SlowDownError{"rate limit exceeded: progress of one attempt", v.After}
	}
	return nil
}

// CountFailure counts a wrong key, token or callback secret. It returns 429 in place of the 401 when an address sends
// too many. Requests without a key, token or secret are not counted: they cannot guess one, and a client that forgot
// the header must see the 401.
func (d *Limits) CountFailure(c *gin.Context, err error) error {
	var known *apierror.Error
	if !errors.As(err, &known) || known.Code != apierror.Unauthorized || !claims(c.Request) {
		return err
	}
	return d.CountGuess(c, err)
}

// Suspects reports whether an address has sent too many wrong secrets.
func (d *Limits) Suspects(c *gin.Context) bool {
	return !d.failures.Look(CallerAt(RemoteAddr(c)), time.Now()).OK
}

// CountGuess counts a wrong secret, and returns err, or 429 when an address sends too many.
func (d *Limits) CountGuess(c *gin.Context, err error) error {
	if v := d.failures.Take(CallerAt(RemoteAddr(c)), 1, time.Now()); !v.OK {
		quota, _ := d.failures.Policy()
		message := fmt.Sprintf("rate limit exceeded: %d wrong keys or secrets a minute from one address", quota)
		return SlowDownError{message, v.After}
	}
	return err
}

// claims reports whether a request carries a key, a token, or the secret or signature of a callback.
func claims(r *http.Request) bool {
	for _, name := range []string{"Authorization", "X-Api-Key", CallbackSecretHeader, CallbackSignatureHeader} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}

const (
	// CallbackSecretHeader carries the secret of the attempt or of the installation.
	CallbackSecretHeader = "X-Callback-Secret"
	// CallbackSignatureHeader carries the signature of a callback, in the format of Standard Webhooks.
	CallbackSignatureHeader = "Webhook-Signature"
)
