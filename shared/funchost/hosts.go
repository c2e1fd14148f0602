package funchost

import (
	"fmt"
	"net"
	"net/http"
	"strings"
)

// allowedHosts are the names of ALLOWED_HOSTS by their port; an empty port stands for each. A page whose name resolves
// to this machine (DNS rebinding) has its own name in Host, and to a browser is of the same origin as we are.
type allowedHosts map[string]bool

func newAllowedHosts(names []string) (allowedHosts, error) {
	hosts := allowedHosts{}
	for _, text := range names {
		name, port := splitHost(strings.TrimSpace(text))
		if name == "" || strings.ContainsAny(name+port, "/*@ ") {
			return nil, fmt.Errorf("ALLOWED_HOSTS: %q is no name or address, with or without :port", text)
		}
		hosts[net.JoinHostPort(name, port)] = true
	}
	return hosts, nil
}

// splitHost is a Host's name in one form, and its port if it has one.
func splitHost(host string) (name, port string) {
	if before, after, err := net.SplitHostPort(host); err == nil {
		host, port = before, after
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), ".")), port
}

// guard answers 421 to what asks for another host. Probes come by a pod's address.
func (a allowedHosts) guard(next http.Handler) http.Handler {
	if len(a) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, port := splitHost(r.Host)
		if !a[net.JoinHostPort(name, port)] && !a[net.JoinHostPort(name, "")] &&
			r.URL.Path != livenessPath && r.URL.Path != readinessPath {
			http.Error(w, "this host is none of ALLOWED_HOSTS", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
