package outbound

import (
	"net/netip"
	"strings"
	"testing"
)

func guardOf(t testing.TB, allow ...string) *guard {
	t.Helper()
	g, err := newGuard(Config{Allow: allow})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// private has each range that must not be called, by its first and last address.
var private = map[string][2]string{
	"this network":           {"0.0.0.0", "0.255.255.255"},
	"RFC 1918, 10":           {"10.0.0.0", "10.255.255.255"},
	"RFC 1918, 172":          {"172.16.0.0", "172.31.255.255"},
	"RFC 1918, 192":          {"192.168.0.0", "192.168.255.255"},
	"carriers' NAT":          {"100.64.0.0", "100.127.255.255"},
	"loopback":               {"127.0.0.0", "127.255.255.255"},
	"link-local":             {"169.254.0.0", "169.254.255.255"},
	"metadata":               {"169.254.169.254", "169.254.169.254"},
	"Alibaba's metadata":     {"100.100.100.200", "100.100.100.200"},
	"Oracle's metadata":      {"192.0.0.192", "192.0.0.192"},
	"Azure's host":           {"168.63.129.16", "168.63.129.16"},
	"protocol assignments":   {"192.0.0.0", "192.0.0.255"},
	"documentation 1":        {"192.0.2.0", "192.0.2.255"},
	"documentation 2":        {"198.51.100.0", "198.51.100.255"},
	"documentation 3":        {"203.0.113.0", "203.0.113.255"},
	"benchmarking":           {"198.18.0.0", "198.19.255.255"},
	"6to4 relays":            {"192.88.99.0", "192.88.99.255"},
	"multicast":              {"224.0.0.0", "239.255.255.255"},
	"reserved and broadcast": {"240.0.0.0", "255.255.255.255"},
	"IPv6 unspecified":       {"::", "::"},
	"IPv6 loopback":          {"::1", "::1"},
	"IPv4-compatible":        {"::2", "::ffff:ffff"},
	"mapped loopback":        {"::ffff:127.0.0.0", "::ffff:127.255.255.255"},
	"mapped RFC 1918":        {"::ffff:10.0.0.0", "::ffff:10.255.255.255"},
	"IPv4-translated":        {"::ffff:0:0:0", "::ffff:0:ffff:ffff"},
	"NAT64":                  {"64:ff9b::", "64:ff9b::ffff:ffff"},
	"local NAT64":            {"64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"},
	"discard":                {"100::", "100::ffff:ffff:ffff:ffff"},
	"Teredo":                 {"2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"},
	"IPv6 benchmarking":      {"2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff"},
	"ORCHID":                 {"2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff"},
	"ORCHIDv2":               {"2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff"},
	"IPv6 documentation":     {"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"},
	"IPv6 documentation 2":   {"3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"},
	"6to4":                   {"2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	"segment routing":        {"5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	"unassigned":             {"4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	"unique local":           {"fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	"IPv6 metadata":          {"fd00:ec2::254", "fd00:ec2::254"},
	"Google's IPv6 metadata": {"fd20:ce::254", "fd20:ce::254"},
	"IPv6 link-local":        {"fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	"site-local":             {"fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	"IPv6 multicast":         {"ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	"a zone":                 {"fe80::1%eth0", "2606:4700::1111%lo"},
}

func TestNoPrivateAddressIsAllowed(t *testing.T) {
	t.Parallel()
	g := guardOf(t)
	for name, ends := range private {
		for _, text := range ends {
			if g.allows(netip.AddrPortFrom(netip.MustParseAddr(text), 443)) {
				t.Errorf("%s: %s is allowed", name, text)
			}
		}
	}
}

func TestPublicAddressesAreAllowed(t *testing.T) {
	t.Parallel()
	g := guardOf(t)
	for _, text := range []string{
		"1.0.0.0", "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "168.63.129.15",
		"169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.255.255",
		"198.20.0.0", "223.255.255.255", "::ffff:1.1.1.1", "2606:4700::1111", "2a00::1", "2001:4860::8888", "2001:200::1", "2003::1",
	} {
		if !g.allows(netip.AddrPortFrom(netip.MustParseAddr(text), 1)) {
			t.Errorf("%s is not allowed", text)
		}
	}
}

func TestAnOperatorAllowsWhatIsPrivate(t *testing.T) {
	t.Parallel()
	g := guardOf(t, "127.0.0.0/8", " ::1/128", "10.1.2.3", "192.168.0.9:8080", "[fd00::1]:80", "::ffff:10.9.9.9", "172.16.5.5/24")
	for text, want := range map[string]bool{
		"127.0.0.1:1": true, "127.255.0.1:65535": true, "[::ffff:127.0.0.1]:80": true, "[::1]:80": true, "[::2]:80": false,
		"10.1.2.3:80": true, "10.1.2.4:80": false, "192.168.0.9:8080": true, "192.168.0.9:8081": false, "[::ffff:192.168.0.9]:8080": true,
		"[fd00::1]:80": true, "[fd00::1]:81": false, "10.9.9.9:1": true, "172.16.5.200:1": true, "172.16.6.1:1": false,
		"[::1%lo]:80": false, "169.254.169.254:80": false, "[64:ff9b::7f00:1]:80": false, "1.1.1.1:443": true,
	} {
		if got := g.allows(netip.MustParseAddrPort(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestABadAllowListIsNamed(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "localhost", "10.0.0.0/33", "10.0.0", "10.0.0.0-10.0.0.9", "::ffff:10.0.0.0/104", "fe80::1%eth0", "[fe80::1%eth0]:80",
		"127.0.0.1:0", "127.0.0.1:65536", "10.0.0.0/8:80", "http://127.0.0.1", "*",
	} {
		_, err := New(Config{Allow: []string{"127.0.0.1", bad}})
		if err == nil || !strings.HasPrefix(err.Error(), "OUTBOUND_ALLOW: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestThisMachineIsNotReachedByItsPublicAddress(t *testing.T) {
	t.Parallel()
	own, other := netip.MustParseAddrPort("1.1.1.1:40000"), netip.MustParseAddrPort("1.1.1.2:443")
	same := netip.MustParseAddrPort("[::ffff:1.1.1.1]:443")
	if !guardOf(t).selfish(own, same) || guardOf(t).selfish(own, other) || guardOf(t, "1.1.1.1").selfish(own, same) {
		t.Error("itself is taken for another, or another for itself")
	}
}
