package gateway_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// A 405 without the allowed methods would not help a client.
func TestWrongMethodIsAnsweredWithTheAllowedOnes(t *testing.T) {
	t.Parallel()
	h := open(t)
	for path, item := range loadContract(t).Paths.Map() {
		if strings.HasPrefix(path, "/health/") {
			continue // served by the host
		}
		want := slices.Collect(maps.Keys(item.Operations()))
		if slices.Contains(want, http.MethodGet) {
			want = append(want, http.MethodHead)
		}
		slices.Sort(want)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"} {
			if slices.Contains(want, method) {
				continue
			}
			r := h.raw(method, concrete(path))
			if got := r.header.Get("Allow"); r.status != http.StatusMethodNotAllowed || got != strings.Join(want, ", ") {
				t.Errorf("%s %s answers %d, Allow %q, want %q", method, path, r.status, got, want)
			}
			if method != http.MethodHead && r.error().ErrorCode != apierror.MethodNotAllowed {
				t.Errorf("%s %s answers %s", method, path, r.body)
			}
		}
	}
}

func TestUncleanPathIsNotRedirected(t *testing.T) {
	t.Parallel()
	h := open(t)
	for path, plain := range map[string]string{
		"//api/jobs": "/api/jobs", "/api/../api/jobs": "/api/jobs", "/api/jobs/": "/api/jobs", "/api//jobs": "/api/jobs", "//": "/",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := h.raw(method, path)
			if r.wantError(apierror.NotFound); !strings.HasSuffix(r.error().Message, "did you mean "+plain+"?") {
				t.Errorf("%s %s answers %s", method, path, r.body)
			}
		}
	}
}
