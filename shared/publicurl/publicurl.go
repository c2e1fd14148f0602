// Package publicurl reads the address at which clients reach the API, which may have a path of its own.
package publicurl

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// Config has the setting.
type Config struct {
	URL string `envconfig:"PUBLIC_URL" desc:"URL at which clients reach the API and the dashboard, if a proxy has them below a path; CALLBACK_URL is made from it"`
}

// basePath is what a path may have: no escapes, which proxies treat differently.
var basePath = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)

// own are the first parts of the gateway's own paths. With one of them as its base, it could not know whether a proxy
// has removed it.
var own = regexp.MustCompile(`^/(api|assets|events|health|hooks|login|metrics)(/|$)`)

// Base returns the path of the URL without a slash at its end; empty: clients reach the API at the root.
func (c Config) Base() (string, error) {
	if c.URL == "" {
		return "", nil
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("PUBLIC_URL: %q is not an http or https URL with no more than a path", c.URL)
	}
	base := strings.TrimRight(u.EscapedPath(), "/")
	if !basePath.MatchString(base) || own.MatchString(base) {
		return "", fmt.Errorf("PUBLIC_URL: the path %q has special characters, or is one of the gateway's own", base)
	}
	return base, nil
}

// Callback returns where outside systems call back, unless another URL is given.
func (c Config) Callback(given string) (string, error) {
	if given != "" || c.URL == "" {
		return given, nil
	}
	_, err := c.Base()
	return strings.TrimRight(c.URL, "/") + "/api/jobs/callback", err
}

// Below serves requests with the base as without it: a proxy may pass it on or remove it.
func Below(base string, next http.Handler) http.Handler {
	if base == "" {
		return next
	}
	stripped := http.StripPrefix(base, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == base:
			root := r.Clone(r.Context())
			root.URL.Path, root.URL.RawPath = "/", ""
			next.ServeHTTP(w, root)
		case strings.HasPrefix(r.URL.Path, base+"/"):
			stripped.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
