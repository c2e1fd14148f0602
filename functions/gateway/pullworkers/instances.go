package pullworkers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway/throttle"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/pullwire"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

const (
	defaultClaimLimit = 1000

	lookupEvery   = 2 * time.Second // at most, and only while pull workers send requests
	lookupTimeout = 2 * time.Second
	goneAfter     = time.Minute // an address that has left the DNS may still have attempts
	connectWithin = 2 * time.Second

	// overAfter is how long an instance may be away before its attempts are reported as lost. If it was killed, another
	// worker may run them again 7 s later, because its last heartbeat was up to 3 s old.
	overAfter = 7 * time.Second
)

// Instances are the processes of the function pull.
type Instances struct {
	urls     []*url.URL
	secret   string
	claiming *throttle.InUse // concurrent claims of each owner
	lookup   func(ctx context.Context, host string) ([]string, error)
	trouble  telemetry.Trouble

	mu     sync.Mutex
	known  map[string]*instance // by id
	lookAt time.Time            // the next time that names are resolved
}

// instance is one process of the function pull.
type instance struct {
	id, address, url string
	client           *http.Client
	seenAt           time.Time // in the DNS
	awaySince        time.Time // since when every heartbeat has failed; zero: the last one succeeded
	awayAt           time.Time // the last heartbeat that failed
}

// NewInstances makes the instances at the URLs of a Config. An error begins with the name of the wrong setting.
func NewInstances(cfg Config, keys *webhook.CallbackKeys) (*Instances, error) {
	if cfg.ClaimLimit < 0 {
		return nil, fmt.Errorf("PULL_CLAIM_LIMIT: %d is negative", cfg.ClaimLimit)
	}
	if cfg.ClaimLimit == 0 {
		cfg.ClaimLimit = defaultClaimLimit
	}
	p := &Instances{
		secret: pullwire.Secret(keys), claiming: throttle.NewInUse(cfg.ClaimLimit), lookup: net.DefaultResolver.LookupHost,
		trouble: telemetry.Trouble{What: "pass requests of pull workers on", Quiet: 5 * time.Second},
		known:   map[string]*instance{},
	}
	for _, text := range cfg.URLs {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("PULL_URL: %q is not an http or https URL", text)
		}
		p.urls = append(p.urls, u)
	}
	if len(p.urls) > 0 && p.secret == "" {
		return nil, errors.New("CALLBACK_SECRETS: is required with PULL_URL, because pull authenticates gateways by it")
	}
	return p, nil
}

// instances returns the instances in the DNS, in random order.
func (p *Instances) instances(ctx context.Context) ([]*instance, error) {
	if len(p.urls) == 0 {
		return nil, apierror.New(apierror.Unavailable, "this installation has no pull workers: PULL_URL is not set")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !now.Before(p.lookAt) {
		p.lookAt = now.Add(lookupEvery)
		p.resolve(ctx, now)
	}
	var all []*instance
	latest := time.Time{}
	for _, in := range p.known {
		if in.seenAt.After(latest) {
			latest = in.seenAt
		}
	}
	for _, in := range p.known {
		if in.seenAt.Equal(latest) {
			all = append(all, in) // the iteration order of a map is random
		}
	}
	if len(all) == 0 {
		return nil, errNoPull
	}
	return all, nil
}

// resolve updates the addresses. After a failed lookup, the addresses from before stay. The caller holds the mutex.
func (p *Instances) resolve(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	defer cancel()
	var seen []*instance
	for _, u := range p.urls {
		hosts, err := p.lookup(ctx, u.Hostname())
		if err != nil {
			p.trouble.Note(ctx, fmt.Errorf("look up PULL_URL: %w", err))
			return
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		for _, host := range hosts {
			seen = append(seen, p.instance(u, net.JoinHostPort(host, port)))
		}
	}
	for _, in := range seen {
		in.seenAt = now
	}
	maps.DeleteFunc(p.known, func(_ string, in *instance) bool {
		gone := now.Sub(in.seenAt) > goneAfter
		if gone {
			in.client.CloseIdleConnections()
		}
		return gone
	})
}

// instance makes the client of an address. It connects to the address but uses the name of the URL, for which the
// certificate is.
func (p *Instances) instance(u *url.URL, address string) *instance {
	hash := sha256.Sum256([]byte(u.Scheme + "://" + address))
	id := hex.EncodeToString(hash[:5])
	if in := p.known[id]; in != nil {
		return in
	}
	dialer := net.Dialer{Timeout: connectWithin}
	in := &instance{id: id, address: address, url: u.Scheme + "://" + u.Host, client: &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, network, address)
			},
			ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10, // for each held claim; longer bodies bypass these buffers
			MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute, DisableCompression: true,
			TLSHandshakeTimeout: connectWithin,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	p.known[id] = in
	return in
}

// byID returns the instance that handed out tokens that begin with an id; nil: it is gone.
func (p *Instances) byID(id string) *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[id]
}

// isOver records whether a heartbeat that was sent at an instant succeeded, and reports whether the instance has been
// away so long that its attempts are lost.
func (p *Instances) isOver(in *instance, sent time.Time, failed error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case failed == nil:
		in.awaySince = time.Time{}
		return false
	case in.awaySince.IsZero() || sent.Sub(in.awayAt) > 2*overAfter: // a cancelled heartbeat proves little
		in.awaySince = sent
	}
	in.awayAt = time.Now()
	return time.Since(in.awaySince) >= overAfter
}

func (p *Instances) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, in := range slices.Collect(maps.Values(p.known)) {
		in.client.CloseIdleConnections()
	}
}
