// Package aliases serves the paths and names of other job systems (docs/coming-from.md).
package aliases

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"
)

// aliasKey marks the context of a request that came by a path of another system (docs/coming-from.md): its body may
// have that system's names. Requests for the paths of this API are read as ever.
type aliasKey struct{}

// Handler serves the paths of the systems that clients come from as if they were this API's. A browser that asks for
// a page gets the dashboard's, which has some of the same addresses.
func Handler(next http.Handler, isPage func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := aliasOf(r.URL); to != nil && !isPage(r) {
			r = r.WithContext(context.WithValue(r.Context(), aliasKey{}, true))
			r.URL = to
		}
		next.ServeHTTP(w, r)
	})
}

// aliasOf is the address that another system's stands for; nil: it is none of theirs.
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

// Used reports whether a request came by an alias.
func Used(c *gin.Context) bool { return c.Request.Context().Value(aliasKey{}) != nil }
