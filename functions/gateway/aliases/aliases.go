// Package aliases serves the paths and names of other job systems (docs/coming-from.md).
package aliases

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"
)

// aliasKey marks the context of a request that used a path of another system (docs/coming-from.md): its body may have
// the names of that system. Requests to the paths of this API are read as usual.
type aliasKey struct{}

// Handler maps the paths of other job systems to those of this API. A browser that requests a page gets the dashboard,
// which shares some of these addresses.
func Handler(next http.Handler, isPage func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := aliasOf(r.URL); to != nil && !isPage(r) {
			r = r.WithContext(context.WithValue(r.Context(), aliasKey{}, true))
			r.URL = to
		}
		next.ServeHTTP(w, r)
	})
}

// aliasOf returns the address of this API for an alias; nil: it is no alias.
func aliasOf(at *url.URL) *url.URL {
	to := *at
	switch {
	case at.Path == "/actuator/health":
		to.Path, to.RawPath = "/api/health", ""
	case at.Path == "/jobs" || strings.HasPrefix(at.Path, "/jobs/"):
		to.Path = "/api" + at.Path
		if at.RawPath != "" {
			to.RawPath = "/api" + at.RawPath
		}
	default:
		return nil
	}
	return &to
}

// Used reports whether a request used an alias.
func Used(c *gin.Context) bool { return c.Request.Context().Value(aliasKey{}) != nil }
