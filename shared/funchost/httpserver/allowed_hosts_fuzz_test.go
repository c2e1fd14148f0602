package httpserver

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzAllowedHosts checks that an entry of ALLOWED_HOSTS permits its own name, and no other that a browser could send.
func FuzzAllowedHosts(f *testing.F) {
	for _, text := range []string{
		"localhost", "LOCALHOST.", "jobs.example:8443", "[::1]:80", "::1", "[::1]", "*.example", "a:b:c", "a:http", "a:0", " x ", "[a", "K.example", "x..",
	} {
		f.Add(text, text)
		f.Add(text, "localhost:8080")
		f.Add(text, "kelvin.example")
	}
	f.Fuzz(func(t *testing.T, text, host string) {
		hosts, err := NewAllowedHosts([]string{text})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "ALLOWED_HOSTS: ") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		handler := hosts.Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		passes := func(host string) bool {
			r, w := httptest.NewRequest(http.MethodGet, "/api/jobs", http.NoBody), httptest.NewRecorder()
			r.Host = host
			handler.ServeHTTP(w, r)
			return w.Code == http.StatusOK
		}
		text = strings.TrimSpace(text)
		name, port := splitHost(text)
		if !passes(text) || !passes(strings.ToUpper(net.JoinHostPort(name, port))) {
			t.Errorf("%q does not let itself pass", text)
		}
		if passes("x"+text) || passes("x."+text) || passes("") {
			t.Errorf("%q lets others pass", text)
		}
		u, err := url.Parse("http://" + host) // as a browser reads it
		if err != nil || u.Host != host || !passes(host) {
			return
		}
		if got := strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")); got != name || port != "" && u.Port() != port {
			t.Errorf("%q lets %q pass", text, host)
		}
	})
}
