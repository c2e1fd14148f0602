package pullworkers

import (
	"net/url"

	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// Config has the addresses of the instances that hand out attempts.
type Config struct {
	URLs       []string `envconfig:"PULL_URL" desc:"URLs of the function pull; each address to which a name resolves is an instance; empty: there are no pull workers"`
	ClaimLimit int      `envconfig:"PULL_CLAIM_LIMIT" default:"1000" desc:"claims of pull workers of each owner that are held at once; more are answered 429"`
}

// Plain returns the settings whose addresses use plain HTTP.
func (c Config) Plain() []string {
	for _, text := range c.URLs {
		if u, err := url.Parse(text); err == nil && u.Scheme == "http" && !tlsfiles.IsLoopback(u.Hostname()) {
			return []string{"PULL_URL (http)"}
		}
	}
	return nil
}
