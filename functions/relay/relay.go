// Package relay submits the jobs of outboxes in users' databases.
//
// Why a relay holds its transaction open: docs/decisions/api.md#an-outboxs-job-has-the-id-that-sql-made
package relay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/outboxdb"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// Name is the function's name.
const Name = "relay"

// submitMost is the longest time that the gateway may take for a batch. The rows are locked meanwhile; the database
// server ends a transaction that idles for 20 s.
const submitMost = 10 * time.Second

// Config lists the outboxes, and names the gateway for their jobs.
type Config struct {
	DatabasesFile string       `envconfig:"RELAY_DATABASES_FILE" desc:"a file with the addresses of databases that have an outbox, a line each; lines that begin with # are comments; read at the start"`
	Database      secret.Text  `envconfig:"RELAY_DATABASE_URL" infile:"file:" desc:"the address of one such database, instead of a file or beside it"`
	GatewayURL    string       `envconfig:"GATEWAY_URL" default:"http://localhost:8080" desc:"where the gateway is"`
	GatewayCAFile string       `envconfig:"GATEWAY_CA_FILE" desc:"PEM of the CAs that verify the gateway; empty: the system's CAs"`
	Databases     secret.Texts `ignored:"true"` // further addresses
	APIKey        secret.Text  `envconfig:"GATEWAY_API_KEY" desc:"the API key with which jobs are submitted, with the role submit: its owner is the jobs' owner"`
}

// Function submits the jobs of outboxes.
type Function struct {
	sources []*source
	plain   []string
}

// New returns the function. It does not connect to a database yet. An error begins with the setting's name.
func New(ctx context.Context, cfg Config) (*Function, error) {
	urls, err := cfg.databases()
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(cfg.GatewayURL)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, errors.New("GATEWAY_URL: must be a URL such as https://jobs.example.org")
	}
	ca := tlsfiles.File{Setting: "GATEWAY_CA_FILE", Path: cfg.GatewayCAFile}
	trust, err := tlsfiles.NewClient(ca, tlsfiles.File{}, tlsfiles.File{})
	if err != nil {
		return nil, err
	}
	f := &Function{}
	if at.Scheme == "http" && !tlsfiles.IsLoopback(at.Hostname()) {
		f.plain = append(f.plain, "GATEWAY_URL (http)")
	}
	gateway := client.New(cfg.GatewayURL, cfg.APIKey.Reveal(), client.WithRetries(0), client.WithTimeout(submitMost),
		client.WithTransport(trust.Transport(func(t *http.Transport) {
			t.MaxIdleConnsPerHost = 100
			t.DisableCompression = true // answers are short lists of known ids
		})))
	for i, url := range urls {
		outbox, err := outboxdb.Open(ctx, url)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("RELAY_DATABASES_FILE, RELAY_DATABASE_URL: address %d: %w", i+1, err)
		}
		if !pgpool.Secure(url) {
			f.plain = append(f.plain, "RELAY_DATABASE_URL (sslmode is neither verify-full nor verify-ca)")
		}
		f.sources = append(f.sources, newSource(outbox, gateway))
	}
	return f, nil
}

func (c *Config) databases() (urls []string, err error) {
	urls = c.Databases.Reveal()
	if c.Database.IsSet() {
		urls = append(urls, c.Database.Reveal())
	}
	if c.DatabasesFile != "" {
		text, err := os.ReadFile(c.DatabasesFile)
		if err != nil {
			return nil, fmt.Errorf("RELAY_DATABASES_FILE: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				urls = append(urls, line)
			}
		}
	}
	if len(urls) == 0 {
		return nil, errors.New("RELAY_DATABASES_FILE, RELAY_DATABASE_URL: neither names a database")
	}
	return urls, nil
}

// Plain returns the settings with which the function sends plain text.
func (f *Function) Plain() []string { return f.plain }

// Close closes the connections to databases.
func (f *Function) Close() {
	for _, s := range f.sources {
		s.outbox.Close()
	}
}

// Host is how the function is hosted. An unavailable database does not make the function unready, because it still
// serves the other outboxes.
func (f *Function) Host() funchost.Function {
	return funchost.Function{Name: Name, Run: f.Run, Silent: true}
}

// Run submits until ctx ends. A pass that is under way then may still use its full time.
func (f *Function) Run(ctx context.Context, _ funchost.Publish) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, s := range f.sources {
		s.begin(ctx, all)
	}
	return all.Wait()
}
