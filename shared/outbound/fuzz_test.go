package outbound

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// reserved is written apart from the classifier: what a call must never reach, within what is routed at all.
var reserved = []struct{ first, last string }{
	{"0.0.0.0", "0.255.255.255"}, {"10.0.0.0", "10.255.255.255"}, {"100.64.0.0", "100.127.255.255"}, {"127.0.0.0", "127.255.255.255"},
	{"168.63.129.16", "168.63.129.16"}, {"169.254.0.0", "169.254.255.255"}, {"172.16.0.0", "172.31.255.255"}, {"192.0.0.0", "192.0.0.255"},
	{"192.0.2.0", "192.0.2.255"}, {"192.31.196.0", "192.31.196.255"}, {"192.52.193.0", "192.52.193.255"}, {"192.88.99.0", "192.88.99.255"},
	{"192.168.0.0", "192.168.255.255"}, {"192.175.48.0", "192.175.48.255"}, {"198.18.0.0", "198.19.255.255"}, {"198.51.100.0", "198.51.100.255"},
	{"203.0.113.0", "203.0.113.255"}, {"224.0.0.0", "255.255.255.255"},
	{"::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}, {"2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"},
	{"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"}, {"2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	{"2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff"}, {"3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"},
	{"4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
}

func isReserved(addr netip.Addr) bool {
	if addr.Is4In6() {
		bytes := addr.As16()
		addr = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	for _, r := range reserved {
		first, last := netip.MustParseAddr(r.first), netip.MustParseAddr(r.last)
		if first.BitLen() == addr.BitLen() && first.Compare(addr) <= 0 && addr.Compare(last) <= 0 {
			return true
		}
	}
	return false
}

func FuzzAnAddressIsClassifiedAsTheRegistriesSay(f *testing.F) {
	for _, ends := range private {
		for _, text := range ends {
			addr := netip.MustParseAddr(text).WithZone("")
			f.Add(addr.AsSlice())
			if next := addr.Next(); next.IsValid() {
				f.Add(next.AsSlice())
			}
			if before := addr.Prev(); before.IsValid() {
				f.Add(before.AsSlice())
			}
		}
	}
	g := guardOf(f)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		addr, ok := netip.AddrFromSlice(bytes)
		if !ok {
			return
		}
		allowed := g.allows(netip.AddrPortFrom(addr, 443))
		if allowed == isReserved(addr) {
			t.Errorf("%s: allowed %v", addr, allowed)
		}
		plain := addr.Unmap()
		if allowed && (plain.IsLoopback() || plain.IsPrivate() || plain.IsLinkLocalUnicast() || plain.IsMulticast() ||
			plain.IsUnspecified() || !plain.IsGlobalUnicast()) {
			t.Errorf("%s is allowed", addr)
		}
		if plain.Is4() != addr.Is4() && allowed != g.allows(netip.AddrPortFrom(plain, 443)) {
			t.Errorf("%s is not what %s is", addr, plain)
		}
	})
}

// cReads reports whether C's inet_aton reads a host as a number: up to four parts, each decimal, octal or hex.
func cReads(host string) bool {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 64)
		goOnly := len(part) > 1 && part[0] == '0' && strings.ContainsAny(part[1:2], "bBoO") || strings.Contains(part, "_")
		if part == "" || goOnly || err != nil {
			return false
		}
		if limit := uint64(1) << 8; i < len(parts)-1 && n >= limit || n >= 1<<32 {
			return false
		}
	}
	return true
}

func FuzzAURLThatPassesNamesItsTarget(f *testing.F) {
	for _, host := range disguised {
		f.Add("http://" + host + ":80/a?b")
	}
	for _, text := range []string{
		"http://example.org", "https://example.org:8443/a b", "http://a:b@example.org", "http://[::1]:80/", "HTTP://x/#y", "http://0x7f.1",
		"http:/\\example.org", "http://example.org:80:80/", "http://exa\tmple.org", "http://example.org/\u2028", "https://[::ffff:1.2.3.4]", "http://1.2.3.4.:80",
		"http://0x_9", "http://0b1", "http://A:",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if CheckURL(text) != nil {
			return
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, text, http.NoBody)
		if err != nil {
			t.Fatalf("%q passes, and cannot be called: %v", text, err)
		}
		if checkTarget(r.URL) != nil || r.Host != r.URL.Host {
			t.Errorf("%q passes, and what is called is %s at %s", text, r.URL, r.Host)
		}
		scheme, rest, _ := strings.Cut(text, "://")
		authority, _, _ := strings.Cut(rest, "/")
		authority, _, _ = strings.Cut(authority, "?")
		if scheme = strings.ToLower(scheme); scheme != "http" && scheme != "https" ||
			strings.ContainsAny(authority, "@%\\#\x7f \t\r\n") || r.URL.Host != strings.TrimSuffix(authority, ":") {
			t.Errorf("%q passes, and what is called is %q", text, r.URL.Host)
		}
		host := strings.TrimSuffix(r.URL.Hostname(), ".")
		if addr, err := netip.ParseAddr(r.URL.Hostname()); err != nil && cReads(host) || err == nil && addr.Zone() != "" {
			t.Errorf("%q passes, and its host is a number to some", text)
		}
		again, err := url.Parse(r.URL.String())
		if err != nil || again.Host != r.URL.Host || again.Scheme != r.URL.Scheme {
			t.Errorf("%q is written again as %s", text, r.URL)
		}
	})
}
