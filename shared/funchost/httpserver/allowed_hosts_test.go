package httpserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/funchost/probe"
)

// A page with a name of its own may resolve that name to a loopback address.
func TestOnlyAllowedHostsAreAnswered(t *testing.T) {
	t.Parallel()
	hosts, err := NewAllowedHosts([]string{"localhost", "127.0.0.1", "[::1]", " Gateway ", "jobs.example:8443", "::2"})
	if err != nil {
		t.Fatal(err)
	}
	handler := hosts.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for host, want := range map[string]int{
		"localhost": 204, "LOCALHOST:8080": 204, "localhost.": 204, "127.0.0.1:1": 204, "[::1]": 204, "[::1]:8080": 204, "[::2]:1": 204,
		"gateway:8080": 204, "jobs.example:8443": 204,
		"jobs.example": 421, "jobs.example:8080": 421, "evil.example:8080": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421,
		"127.0.0.2": 421, "": 421,
	} {
		for path, want := range map[string]int{"/api/jobs": want, "/metrics": want, probe.LivenessPath: 204, probe.ReadinessPath: 204} {
			r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
			r.Host = host
			if handler.ServeHTTP(w, r); w.Code != want {
				t.Errorf("%s of %q: %d, not %d", path, host, w.Code, want)
			}
		}
	}
	for _, bad := range []string{"", "http://localhost", "*.example", "a b"} {
		if _, err := NewAllowedHosts([]string{bad}); err == nil || !strings.HasPrefix(err.Error(), "ALLOWED_HOSTS: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
	if AllowedHosts(nil).Guard(http.NotFoundHandler()).ServeHTTP(w, r); w.Code != http.StatusNotFound {
		t.Errorf("where none are set: %d", w.Code)
	}
}
