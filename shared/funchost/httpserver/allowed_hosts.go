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

// AllowedHosts are the names of ALLOWED_HOSTS by their port; an empty port stands for each. A page whose name resolves
// to this machine (DNS rebinding) has its own name in Host, and to a browser is of the same origin as we are.
type AllowedHosts map[string]bool

// NewAllowedHosts reads the entries of ALLOWED_HOSTS.
func NewAllowedHosts(names []string) (AllowedHosts, error) {
	hosts := AllowedHosts{}
	for _, text := range names {
		name, port := splitHost(strings.TrimSpace(text))
		if !isHost(name, port) {
			return nil, fmt.Errorf("ALLOWED_HOSTS: %q is no name or address, with or without :port", text)
		}
		hosts[net.JoinHostPort(name, port)] = true
	}
	return hosts, nil
}

// isHost reports whether a browser can send the name and the port in Host: letters outside ASCII come as xn--….
func isHost(name, port string) bool {
	if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
		return false
	}
	if addr, err := netip.ParseAddr(name); err == nil && addr.Zone() == "" {
		return true
	}
	return !strings.Contains("."+name+".", "..") && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-._") == ""
}

// splitHost is a Host's name in one form, and its port if it has one.
func splitHost(host string) (name, port string) {
	if before, after, err := net.SplitHostPort(host); err == nil {
		host, port = before, after
	}
	if inner, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, ".")), port
}

// Guard answers 421 to requests for another host. Probes come by a pod's address.
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
