package httpserver

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/jobweaver/jobweaver/shared/funchost/probe"
)

// AllowedHosts has the names of ALLOWED_HOSTS by their port; an empty port stands for any. A page whose name resolves
// to this machine (DNS rebinding) sends its own name in Host, and to a browser it has the same origin as this server.
type AllowedHosts map[string]bool

// NewAllowedHosts reads the entries of ALLOWED_HOSTS.
func NewAllowedHosts(names []string) (AllowedHosts, error) {
	hosts := AllowedHosts{}
	for _, text := range names {
		name, port := splitHost(strings.TrimSpace(text))
		if !isHost(name, port) {
			return nil, fmt.Errorf("ALLOWED_HOSTS: %q is not a name or address, with or without :port", text)
		}
		hosts[net.JoinHostPort(name, port)] = true
	}
	return hosts, nil
}

// isHost reports whether a browser can send the name and the port in Host: it encodes letters outside ASCII as xn--….
func isHost(name, port string) bool {
	if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
		return false
	}
	if addr, err := netip.ParseAddr(name); err == nil && addr.Zone() == "" {
		return true
	}
	return !strings.Contains("."+name+".", "..") && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-._") == ""
}

// splitHost returns the name of a Host header in a canonical form, and its port if it has one.
func splitHost(host string) (name, port string) {
	if before, after, err := net.SplitHostPort(host); err == nil {
		host, port = before, after
	}
	if inner, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, ".")), port
}

// Guard answers 421 to requests for other hosts, except probes, which use a pod's address.
func (a AllowedHosts) Guard(next http.Handler) http.Handler {
	if len(a) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, port := splitHost(r.Host)
		if !a[net.JoinHostPort(name, port)] && !a[net.JoinHostPort(name, "")] &&
			r.URL.Path != probe.LivenessPath && r.URL.Path != probe.ReadinessPath {
			http.Error(w, "this host is none of ALLOWED_HOSTS", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
